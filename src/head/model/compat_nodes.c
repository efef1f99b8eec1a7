/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/compat_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "wire/env/compat_env.h"

void compat_nodes_fill(struct launch_compat *to, unsigned family, const struct plan *p,
                       const struct hosts *hosts)
{
        to->family = (uint8_t)family;
        if (!compat_env_needs_nodes(to->family))
                return;
        to->n_nodes = (uint32_t)p->num_nodes;
        to->nodes = xcalloc(to->n_nodes, sizeof(*to->nodes));
        for (size_t i = 0; i < p->n_nodes; i++) {
                const struct plan_node *n = &p->nodes[i];

                if (n->node_rank < 0)
                        continue;
                to->nodes[n->node_rank].name = xstrdup(hosts->v[n->host].name);
                to->nodes[n->node_rank].n_ranks = (uint32_t)n->n_ranks;
        }
}

size_t compat_nodes_longest(unsigned family, const struct plan *p, const struct hosts *hosts)
{
        struct launch_compat compat = { 0 };
        CLEANUP(free_textp) char *list = NULL;

        if (family != COMPAT_SLURM)
                return 0;
        compat_nodes_fill(&compat, family, p, hosts);
        list = compat_env_node_list(&compat);
        launch_compat_finish(&compat);
        return strlen(list);
}
