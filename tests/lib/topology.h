/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "wire/store_msg.h"

/* Copies both tables; for topology_finish(), or a store server, which takes a topology over. */
static inline struct topology make_topology(int world_size, int n_nodes, const int *node_of_rank,
                                            const char *const *hosts)
{
        struct topology t = { .n_nodes = (uint32_t)n_nodes, .world_size = (uint32_t)world_size };

        t.hosts = xcalloc((size_t)n_nodes, sizeof(*t.hosts));
        for (int i = 0; i < n_nodes; i++)
                t.hosts[i] = xstrdup(hosts[i]);
        t.node_of_rank = xcalloc((size_t)world_size, sizeof(*t.node_of_rank));
        for (int i = 0; i < world_size; i++)
                t.node_of_rank[i] = (uint32_t)node_of_rank[i];
        return t;
}
