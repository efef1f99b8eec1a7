/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes are counted within a world: each role with replicas looks like a job of its own to its
 * ranks. A node has the name of its host in the list, and stands at its node rank in that world.
 */
#include "head/model/compat_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "wire/env/compat_env.h"

void compat_nodes_fill(struct launch_compat *to, unsigned family, const struct plan *p,
                       const struct plan_world *world, const struct hosts *hosts)
{
        to->family = (uint8_t)family;
        if (!compat_env_needs_nodes(to->family))
                return;
        to->n_nodes = (uint32_t)world->num_nodes;
        to->nodes = xcalloc(to->n_nodes, sizeof(*to->nodes));
        for (int i = world->first; i < world->first + world->size; i++) {
                struct compat_node *n = &to->nodes[p->ranks[i].node_rank];

                /* The first rank of the node in the world brings the name. */
                if (!n->n_ranks++)
                        n->name = xstrdup(hosts->v[p->nodes[p->ranks[i].node].host].name);
        }
}

size_t compat_nodes_longest(unsigned family, const struct plan *p, const struct hosts *hosts,
                            int *ret_nodes)
{
        size_t longest = 0;

        *ret_nodes = 0;
        /* Only Slurm's list of nodes grows with the number of nodes. */
        for (size_t i = 0; family == COMPAT_SLURM && i < p->n_worlds; i++) {
                struct launch_compat compat = { 0 };
                CLEANUP(free_textp) char *list = NULL;

                compat_nodes_fill(&compat, family, p, &p->worlds[i], hosts);
                list = compat_env_node_list(&compat);
                launch_compat_finish(&compat);
                if (strlen(list) > longest) {
                        longest = strlen(list);
                        *ret_nodes = p->worlds[i].num_nodes;
                }
        }
        return longest;
}
