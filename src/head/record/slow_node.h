/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow node: the node with ranks slower than the ranks of other nodes in their part of each step
 *
 * In most programs all ranks take equally long for a step, because they wait for each other. So a
 * rank's own part counts: the step without the waits in the store, and how late the rank reports a
 * step compared to the others. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/record/trace_log.h"

struct slow_node {
        int node;
        double percent; /* longer than half of the nodes, of the time of a step */
        size_t steps;   /* compared, on this node */
};

/* Finds the slowest. False: none, or too few nodes or steps to tell. */
bool slow_node_find(const struct trace_log *log, const struct trace_places *places,
                    struct slow_node *ret);
