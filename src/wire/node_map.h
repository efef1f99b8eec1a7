/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_map: which node each rank of the job runs on, as a few blocks
 *
 * A block says that so many nodes, from the first on, have so many ranks each, in order of ranks.
 * Block layouts need one block for equal nodes; ranks that go round the nodes one per round.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_block {
        uint32_t node, n_nodes, ranks; /* node ranks, ranks on each */
};

struct node_map {
        struct node_block *blocks;
        uint32_t n_blocks;
};

/* Fills the empty @m from the node of each rank. Free with node_map_finish(). */
void node_map_build(struct node_map *m, const uint32_t *node_of_rank, uint32_t n_ranks);
void node_map_finish(struct node_map *m);

/* Returns the node of each rank, malloc'ed; NULL: the blocks do not have exactly @n_ranks ranks on
 * nodes below @n_nodes. */
uint32_t *node_map_expand(const struct node_map *m, uint32_t n_ranks, uint32_t n_nodes);

/* Writes the map as MPICH's PMI_process_mapping, "(vector,(0,4,8))": blocks of node, nodes, ranks
 * on each, where a list that is too short for all ranks is repeated from the first block with node
 * 0 on (MPICH, src/pmi). Writes "" if it does not fit. */
void node_map_text(const struct node_map *m, char *to, size_t size);
