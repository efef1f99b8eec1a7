/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/tree.h"

#include <stdbool.h>

#include "base/strv.h"
#include "lib/unit.h"

/* How many levels a full tree needs for @n nodes. */
static size_t levels(size_t n, size_t k)
{
        size_t depth = 0, level = 1, room = 0;

        while (room < n) {
                level *= k;
                room += level;
                depth++;
        }
        return depth;
}

/* Descendants follow a node: the parent of the next node is the last node or an ancestor of it.
 */
static bool follows(const int *parent, size_t i)
{
        int p = (int)i - 1;

        while (p != parent[i] && p != TREE_HEAD)
                p = parent[p];
        return p == parent[i];
}

static void check(size_t n, size_t k)
{
        int *parent = xcalloc(n, sizeof(*parent));
        size_t *children = xcalloc(n + 1, sizeof(*children));
        size_t *depth = xcalloc(n, sizeof(*depth)), deepest = 0;

        tree_plan(n, k, parent);
        for (size_t i = 0; i < n; i++) {
                assert_in_range(parent[i] + 1, 0, i);
                assert_true(follows(parent, i));
                children[parent[i] + 1]++;
                depth[i] = parent[i] == TREE_HEAD ? 1 : depth[parent[i]] + 1;
                deepest = MAX(deepest, depth[i]);
        }
        for (size_t i = 0; i <= n; i++)
                assert_true(children[i] <= k);
        assert_int_equal(deepest, levels(n, k));
        free(parent);
        free(children);
        free(depth);
}

TEST(every_size_makes_a_tree)
{
        static const size_t ks[] = { 1, 2, 3, 8, 32, 100 };

        for (size_t i = 0; i < ARRAY_SIZE(ks); i++) {
                size_t k = ks[i], sizes[] = { 0,     1,         k - 1,     k,         k + 1,
                                              k * k, k * k - 1, k * k + 1, k * k + k, 10000 };

                for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
                        check(sizes[s], k);
        }
}

TEST(the_first_levels_are_as_drawn)
{
        static const int want[] = { TREE_HEAD, 0, 1, 0, TREE_HEAD, 4, 4 };
        int parent[7];

        tree_plan(7, 2, parent);
        for (size_t i = 0; i < 7; i++)
                assert_int_equal(parent[i], want[i]);
}

TEST(few_nodes_are_all_the_heads_own)
{
        int parent[8];

        tree_plan(8, 8, parent);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(parent[i], TREE_HEAD);
}

TEST(hosts_that_need_no_ssh_are_left_out)
{
        struct host v[] = { { .local = true }, { 0 }, { .spare = true }, { 0 }, { 0 } };
        const struct hosts hosts = { .v = v, .n = ARRAY_SIZE(v) };
        static const int want[] = { TREE_HEAD, TREE_HEAD, TREE_HEAD, 1, 3 };
        int *parent = tree_of_hosts(&hosts, 1);

        for (size_t i = 0; i < ARRAY_SIZE(want); i++)
                assert_int_equal(parent[i], want[i]);
        free(parent);
}
