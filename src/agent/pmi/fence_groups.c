/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group is made at the first fence of a set of members and stays: the count of completed fences
 * is a part of the names in the store. The group of all ranks is the first, and has no list.
 * Places of ranks come from the map of the order (struct fence_world).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/pmi/fence_private.h"
#include "base/memory.h"

static uint32_t rank_of_group(const struct fence_group *g, uint32_t i)
{
        return g->ranks ? g->ranks[i] : i;
}

/* Names a set of members: equal on all nodes, since members ascend. */
static uint64_t hash_ranks(const uint32_t *ranks, uint32_t n)
{
        uint64_t hash = 14695981039346656037U; /* FNV-1a */

        for (uint32_t i = 0; i < n; i++)
                for (int byte = 0; byte < 4; byte++)
                        hash = (hash ^ (ranks[i] >> (8 * byte) & 255)) * 1099511628211U;
        return hash;
}

/* Notes the nodes of the members, in ascending order, and the local members. */
static void place_members(const struct fence *f, struct fence_group *g)
{
        bool *seen = xcalloc(f->world.n_nodes, sizeof(*seen));

        /* Space for all members; few are local on a large job. */
        g->local = xcalloc(g->n_ranks, sizeof(*g->local));
        for (uint32_t i = 0; i < g->n_ranks; i++) {
                uint32_t rank = rank_of_group(g, i), node = f->world.node_of_rank[rank];

                g->n_nodes += !seen[node];
                seen[node] = true;
                if (node == f->world.node)
                        g->local[g->n_local++] = rank;
        }
        g->nodes = xcalloc(g->n_nodes, sizeof(*g->nodes));
        for (uint32_t node = 0, n = 0; node < f->world.n_nodes; node++)
                if (seen[node])
                        g->nodes[n++] = node;
        free(seen);
}

void fence_group_free(struct fence_group *g)
{
        struct fence_op *op, *next;

        DL_FOREACH_SAFE(g->ops, op, next)
        {
                free(op->value);
                free(op->text);
                free(op);
        }
        free(g->ranks);
        free(g->local);
        free(g->nodes);
        free(g);
}

struct fence_group *fence_group_add(struct fence *f, const uint32_t *ranks, uint32_t n)
{
        struct fence_group *g = xcalloc(1, sizeof(*g));

        g->n_ranks = ranks ? n : f->world.n_ranks;
        if (ranks) {
                g->ranks = xcalloc(n, sizeof(*ranks));
                memcpy(g->ranks, ranks, n * sizeof(*ranks));
                snprintf(g->name, sizeof(g->name), "fence/%016" PRIx64, hash_ranks(ranks, n));
        } else {
                snprintf(g->name, sizeof(g->name), "fence/all");
        }
        place_members(f, g);
        LL_PREPEND(f->groups, g);
        f->n_groups++;
        return g;
}

/* Also false without ranks. */
static bool are_ranks_ascending(const struct fence *f, const uint32_t *ranks, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (ranks[i] >= f->world.n_ranks || (i && ranks[i] <= ranks[i - 1]))
                        return false;
        return n;
}

int fence_group_find(struct fence *f, const uint32_t *ranks, uint32_t n, struct fence_group **ret)
{
        struct fence_group *g;

        *ret = f->all;
        if (!ranks)
                return 0;
        if (!are_ranks_ascending(f, ranks, n))
                return -EINVAL;
        /* Compares members, not names: two sets may have the same hash. */
        LL_FOREACH(f->groups, g)
        {
                if (g->ranks && g->n_ranks == n && !memcmp(g->ranks, ranks, n * sizeof(*ranks)))
                        break;
        }
        /* Limits the memory that a rank can make the agent use. */
        if (!g && f->n_groups >= FENCE_GROUPS_MAX)
                return -ENOBUFS;
        *ret = g ? g : fence_group_add(f, ranks, n);
        return (*ret)->n_local ? 0 : -EINVAL;
}
