/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node with all descendants is a range of the list: the first member leads, and the others are
 * split into K ranges, led by the children. Longer ranges come first, and lengths differ by at most
 * 1. So a parent always stands before the children, a single pass over the list is enough, and
 * @end, the end of each node's range, is all the state. Nodes of this machine need no ssh, and
 * spare nodes may never be used: both stay with the head.
 */
#include "head/model/tree.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/memory.h"

/* Splits the nodes [from, to) into @k ranges with parent @above. The first node i of a range leads
 * the rest; @end[i] becomes the end of the range. */
static void split_range(int above, size_t from, size_t to, size_t k, int *parent, size_t *end)
{
        size_t n = to - from, ranges = MIN(n, k);

        for (size_t i = 0; i < ranges; i++) {
                /* The first ranges take the nodes left over, one each. */
                size_t len = n / ranges + (i < n % ranges);

                parent[from] = above;
                end[from] = from + len;
                from += len;
        }
}

void tree_plan(size_t n, size_t k, int *parent)
{
        size_t *end = xcalloc(n, sizeof(*end));

        split_range(TREE_HEAD, 0, n, k, parent, end);
        /* A parent stands before the children, so end[i] is set when node i is reached. */
        for (size_t i = 0; i < n; i++)
                split_range((int)i, i + 1, end[i], k, parent, end);
        free(end);
}

int *tree_of_hosts(const struct hosts *hosts, size_t k)
{
        int *parents = xcalloc(hosts->n, sizeof(*parents)), *plan;
        size_t *members = xcalloc(hosts->n, sizeof(*members)), n = 0;

        for (size_t i = 0; i < hosts->n; i++) {
                parents[i] = TREE_HEAD;
                if (!hosts->v[i].local && !hosts->v[i].spare)
                        members[n++] = i;
        }
        /* The plan counts members only. */
        plan = xcalloc(n, sizeof(*plan));
        tree_plan(n, k, plan);
        for (size_t i = 0; i < n; i++)
                if (plan[i] != TREE_HEAD)
                        parents[members[i]] = (int)members[plan[i]];
        free(plan);
        free(members);
        return parents;
}
