/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks are described as blocks of nodes with equally many ranks, which a map of a thousand equal
 * nodes needs one of. A map from the wire is checked against the numbers of ranks and nodes before
 * memory is taken.
 */
#include "wire/node_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Extends the last block if the node is the next one with as many ranks, else begins a block. @cap
 * is the capacity of the array. */
static void add_node_block(struct node_map *m, size_t *cap, uint32_t node, uint32_t ranks)
{
        struct node_block *last = m->n_blocks ? &m->blocks[m->n_blocks - 1] : NULL;

        if (last && last->ranks == ranks && last->node + last->n_nodes == node) {
                last->n_nodes++;
                return;
        }
        m->blocks = xgrow(m->blocks, m->n_blocks, cap, sizeof(*m->blocks));
        m->blocks[m->n_blocks++] = (struct node_block){ node, 1, ranks };
}

void node_map_build(struct node_map *m, const uint32_t *node_of_rank, uint32_t n_ranks)
{
        size_t cap = 0;

        for (uint32_t first = 0, end; first < n_ranks; first = end) {
                for (end = first + 1; end < n_ranks && node_of_rank[end] == node_of_rank[first];)
                        end++;
                add_node_block(m, &cap, node_of_rank[first], end - first);
        }
}

void node_map_finish(struct node_map *m)
{
        free(m->blocks);
        *m = (struct node_map){ 0 };
}

/* Whether the blocks have exactly @n_ranks ranks on nodes below @n_nodes. The sum has 64 bits: a
 * product of two numbers from the wire overflows 32. */
static bool is_node_map_valid(const struct node_map *m, uint32_t n_ranks, uint32_t n_nodes)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < m->n_blocks && n <= n_ranks; i++) {
                const struct node_block *b = &m->blocks[i];

                if (!b->ranks || !b->n_nodes || b->node >= n_nodes ||
                    b->n_nodes > n_nodes - b->node)
                        return false;
                n += (uint64_t)b->n_nodes * b->ranks;
        }
        return n == n_ranks;
}

uint32_t *node_map_expand(const struct node_map *m, uint32_t n_ranks, uint32_t n_nodes)
{
        uint32_t *nodes, *at;

        if (!is_node_map_valid(m, n_ranks, n_nodes))
                return NULL;
        nodes = at = xcalloc(n_ranks, sizeof(*nodes));
        for (uint32_t i = 0; i < m->n_blocks; i++)
                for (uint32_t k = 0; k < m->blocks[i].n_nodes; k++)
                        for (uint32_t r = 0; r < m->blocks[i].ranks; r++)
                                *at++ = m->blocks[i].node + k;
        return nodes;
}

/* Returns the number of blocks after which the list repeats itself to its end. */
static uint32_t find_period(const struct node_map *m)
{
        for (uint32_t n = 1; n < m->n_blocks; n++) {
                /* MPICH repeats a list from its first block with node 0, so a period must begin
                 * there. */
                if (m->blocks[0].node != 0 || m->n_blocks % n)
                        continue;
                if (!memcmp(m->blocks, m->blocks + n, (m->n_blocks - n) * sizeof(*m->blocks)))
                        return n;
        }
        return m->n_blocks;
}

void node_map_text(const struct node_map *m, char *to, size_t size)
{
        uint32_t n = find_period(m);
        size_t at;

        at = (size_t)snprintf(to, size, "(vector");
        for (uint32_t i = 0; i < n && at < size; i++)
                at += (size_t)snprintf(to + at, size - at, ",(%u,%u,%u)", m->blocks[i].node,
                                       m->blocks[i].n_nodes, m->blocks[i].ranks);
        /* snprintf() returns the length without the cut, so @at tells a text that was cut. */
        if (at + 1 < size)
                snprintf(to + at, size - at, ")");
        else
                *to = '\0';
}
