/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding: which processors, and which node's memory, each rank of a node gets
 *
 * Pure: the arguments hold all facts.
 */
#pragma once

#include <stdint.h>

#include "agent/bind/topology.h"
#include "wire/bind_policy.h"

/* The GPUs and the wishes of a rank. */
struct binding_rank {
        const int32_t *gpu_nodes; /* NUMA nodes of the GPUs, or NUMA_UNKNOWN */
        uint32_t n_gpus;
        uint32_t threads; /* OMP_NUM_THREADS of the user; 0 = not set */
};

struct binding {
        struct cpu_mask cpus; /* empty = not bound */
        int32_t node;         /* of preferred memory; NUMA_UNKNOWN = no preference */
        uint32_t threads;     /* for OMP_NUM_THREADS: processors by rank with the same mask */
        const char *why;      /* why the rank is not bound; NULL = there is nothing to say */
};

/*
 * Fills in @to for all @n ranks of an order, by local rank. A mask has allowed processors only, and
 * at least one core for each thread of the user, or there is none.
 *
 * auto: the node of the GPUs, for ranks with GPUs of a single known node, if there are other nodes.
 * numa: the nodes of the GPUs; ranks without GPUs are divided between the nodes, as blocks.
 * socket: the same with sockets. core: whole cores, at the GPUs as long as there are, none twice.
 * exclusive: the cores of a node divided between the ranks there; of the machine if a rank has
 * no single known node. list: the masks of the user.
 *
 * @taken: processors given by core:N to earlier orders; the call adds to the set. Cores are
 * read from @t before with BIND_CORES, BIND_EXCLUSIVE, and if a rank wants more than one thread,
 * and sockets with BIND_SOCKET.
 */
void binding_make(struct binding *to, const struct binding_rank *ranks, uint32_t n,
                  const struct cpu_topology *t, const struct bind_policy *p,
                  struct cpu_mask *taken);
