/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance is a rank: each rank of a role, or rank 0 of a replica for a role that is replicated.
 * The ports of a node and world are one list, which the node reserves. Both functions below count
 * along plan_node.ranks, so the place of an instance is the number of ports before it.
 */
#include "head/model/role_instances.h"

#include "head/model/plan.h"
#include "head/model/role_book.h"

int role_instance_of(const struct role_book *b, const struct plan *p, int rank)
{
        const struct plan_rank *r = &p->ranks[rank];

        return role_book_is_replicated(b, r->program) ? p->worlds[r->world].first : rank;
}

/* Counts the ports of the instances of a world on a node, up to @last. */
static size_t count_instance_ports(const struct role_book *b, const struct plan *p, size_t node,
                                   int world, int last)
{
        const struct intlist *ranks = &p->nodes[node].ranks;
        size_t n = 0;

        /* @last -1 is no rank, so all are counted. */
        for (size_t i = 0; i < ranks->n && ranks->v[i] != last; i++) {
                const struct plan_rank *r = &p->ranks[ranks->v[i]];

                if (r->world == world && role_instance_of(b, p, r->rank) == r->rank)
                        n += role_book_ports(b, r->program)->n;
        }
        return n;
}

size_t role_instances_count_ports(const struct role_book *b, const struct plan *p, size_t node,
                                  int world)
{
        return count_instance_ports(b, p, node, world, -1);
}

size_t role_instance_first_port(const struct role_book *b, const struct plan *p, int rank)
{
        const struct plan_rank *r = &p->ranks[rank];

        return count_instance_ports(b, p, (size_t)r->node, r->world, rank);
}
