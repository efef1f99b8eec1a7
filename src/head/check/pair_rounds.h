/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair rounds: the connections between nodes for `hnlaunch check`
 *
 * For reachability the nodes form a ring in random order. A node connects to the next and to log2 N
 * others, and as many connect to the node. For --pairs each round is another matching: all pairs of
 * a round are measured at once, and no pair twice. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/measure_msg.h"

struct check_pair {
        size_t from, to; /* nodes: @from connects */
        bool told;       /* @result is there */
        struct measured_target result;
        char addr[64]; /* after an error: the best address of @to; "" = none */
};

/* Returns the pairs of @n nodes for reachability, malloc'ed, and their number. Node i is
 * @nodes[i]. */
struct check_pair *pair_ring(const size_t *nodes, size_t n, uint64_t seed, size_t *ret_n);

/* Returns how many rounds of matchings @n nodes take: about log2 N, less than N. */
size_t pair_rounds(size_t n);
/* Fills in the pairs of a round, at most n / 2, and returns how many. */
size_t pair_round(const size_t *nodes, size_t n, size_t round, struct check_pair *to);
