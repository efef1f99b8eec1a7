/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/node_map.h"

#include "lib/unit.h"

enum { RANKS_MAX = 4096 };

/* Builds the map of @n ranks, expands it again, and compares its text. */
static void check(const uint32_t *nodes, uint32_t n, uint32_t n_nodes, const char *text)
{
        CLEANUP(node_map_finish) struct node_map m = { 0 };
        uint32_t *again;
        char got[64];

        node_map_build(&m, nodes, n);
        again = node_map_expand(&m, n, n_nodes);
        assert_non_null(again);
        assert_memory_equal(again, nodes, n * sizeof(*nodes));
        free(again);
        node_map_text(&m, got, sizeof(got));
        assert_string_equal(got, text);
        assert_null(node_map_expand(&m, n + 1, n_nodes));
        assert_null(node_map_expand(&m, n - 1, n_nodes));
        assert_null(node_map_expand(&m, n, n_nodes - 1));
}

#define CHECK(n_nodes, text, ...)                                                                  \
        do {                                                                                       \
                const uint32_t nodes_[] = { __VA_ARGS__ };                                         \
                check(nodes_, ARRAY_SIZE(nodes_), n_nodes, text);                                  \
        } while (0)

TEST(layouts_are_few_blocks)
{
        CHECK(1, "(vector,(0,1,3))", 0, 0, 0);
        CHECK(2, "(vector,(0,2,2))", 0, 0, 1, 1);
        CHECK(2, "(vector,(0,1,3),(1,1,2))", 0, 0, 0, 1, 1);
        CHECK(2, "(vector,(0,2,1))", 0, 1, 0, 1);
        CHECK(2, "(vector,(0,2,1),(0,1,1))", 0, 1, 0);
        CHECK(3, "(vector,(2,1,2),(0,2,1))", 2, 2, 0, 1);
        CHECK(3, "(vector,(0,1,2),(2,1,2))", 0, 0, 2, 2, 0, 0, 2, 2);
}

TEST(a_long_map_is_not_told)
{
        uint32_t nodes[RANKS_MAX];

        for (uint32_t i = 0; i < RANKS_MAX; i++)
                nodes[i] = i * i % 61;
        check(nodes, RANKS_MAX, 61, "");
}

TEST(wrong_blocks_have_no_expansion)
{
        static const struct node_block wrong[] = {
                { 0, 0, 4 },          { 0, 4, 0 }, { 2, 1, 4 }, { 1, 2, 2 },
                { 0, UINT32_MAX, 1 }, { 0, 1, 3 }, { 0, 2, 3 }, { UINT32_MAX, UINT32_MAX, 4 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct node_block block = wrong[i];

                assert_null(node_map_expand(&(struct node_map){ &block, 1 }, 4, 2));
        }
        assert_null(node_map_expand(&(struct node_map){ 0 }, 4, 2));
}
