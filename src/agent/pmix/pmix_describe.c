/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the head becomes the struct of wire/helper/pmix_msg.h. All texts are lent to the
 * struct but for the maps and the prefix, which are made here and freed after encoding.
 */
#include "agent/pmix/pmix_describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/helper/pmix_msg.h"

/* Writes the maps as PMIx reads them: names of nodes, and "0,1;2,3" for the ranks of each. The
 * ranks of a node are chained by arrays of the size of the job, so one pass over the ranks is
 * enough. */
static void put_maps(const uint32_t *node_of_rank, uint32_t n_ranks, uint32_t n_nodes,
                     struct buf *nodes, struct buf *ranks)
{
        uint32_t *first = xcalloc(n_nodes, sizeof(*first)); /* rank of each node, plus 1 */
        uint32_t *last = xcalloc(n_nodes, sizeof(*last));
        uint32_t *next = xcalloc(n_ranks, sizeof(*next)); /* on the same node */

        for (uint32_t rank = 0; rank < n_ranks; rank++) {
                uint32_t node = node_of_rank[rank];

                *(first[node] ? &next[last[node] - 1] : &first[node]) = rank + 1;
                last[node] = rank + 1;
        }
        for (uint32_t node = 0; node < n_nodes; node++) {
                buf_printf(nodes, node ? ",node%u" : "node%u", node);
                buf_appends(ranks, node ? ";" : "");
                for (uint32_t rank = first[node]; rank; rank = next[rank - 1])
                        buf_printf(ranks, rank == first[node] ? "%u" : ",%u", rank - 1);
        }
        free(first);
        free(last);
        free(next);
}

void pmix_describe(struct buf *out, const struct pmix_setup *s, const uint32_t *node_of_rank,
                   const char *folder)
{
        const struct launch_order *l = s->order;
        struct buf nodes = BUF_INIT, ranks = BUF_INIT;
        char name[WORLD_NAME_MAX];
        const char *prefix = strv_env_get(s->base, "PMIX_PREFIX");
        uint32_t *local = xcalloc(l->n_ranks, sizeof(*local));
        uint32_t *programs = xcalloc(l->n_ranks, sizeof(*programs));
        struct pmix_job job = { .restart = l->restart,
                                .world_size = l->world_size,
                                .num_nodes = l->num_nodes,
                                .node = l->node_rank,
                                .local = local,
                                .n_local = l->n_ranks,
                                .programs = programs,
                                .n_programs = l->n_ranks,
                                /* Ranks of Open MPI then yield the processor while they wait. */
                                .oversubscribed = l->n_ranks > s->cores,
                                .folder = (char *)folder,
                                /* The first program stands for all: the library is looked for
                                 * beside its Open MPI. */
                                .program = l->programs[0].argv.v[0],
                                .cwd = l->cwd };

        put_maps(node_of_rank, l->world_size, l->num_nodes, &nodes, &ranks);
        for (uint32_t i = 0; i < l->n_ranks; i++) {
                local[i] = l->ranks[i].rank;
                programs[i] = l->ranks[i].program;
        }
        launch_order_world_name(l, name);
        snprintf(job.run_id, sizeof(job.run_id), "%.63s", name);
        /* Ranks inherit the agent's environment, so the agent's variable is theirs, too. */
        if (!prefix)
                prefix = getenv("PMIX_PREFIX");
        job.prefix = xstrdup(prefix ? prefix : "");
        job.nodes = buf_steal(&nodes);
        job.ranks = buf_steal(&ranks);
        pmix_job_encode(out, &job);
        free(job.prefix);
        free(job.nodes);
        free(job.ranks);
        free(local);
        free(programs);
}
