/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/pair_rounds.h"

#include "lib/unit.h"

enum { NODES_MAX = 130 };

static size_t nodes[NODES_MAX];

static void number_nodes(void)
{
        for (size_t i = 0; i < NODES_MAX; i++)
                nodes[i] = 1000 + i;
}

TEST(each_node_connects_to_as_many_as_connect_to_it)
{
        number_nodes();
        for (size_t n = 0; n < NODES_MAX; n++) {
                size_t in[NODES_MAX] = { 0 }, out[NODES_MAX] = { 0 }, n_pairs;
                struct check_pair *v = pair_ring(nodes, n, n, &n_pairs);

                for (size_t i = 0; i < n_pairs; i++) {
                        assert_true(v[i].from != v[i].to);
                        out[v[i].from - 1000]++;
                        in[v[i].to - 1000]++;
                        for (size_t k = 0; k < i; k++)
                                assert_false(v[i].from == v[k].from && v[i].to == v[k].to);
                }
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(in[i], n < 2 ? 0 : n_pairs / n);
                        assert_int_equal(out[i], in[i]);
                }
                if (n == 64)
                        assert_int_equal(n_pairs, 64 * 7);
                free(v);
        }
}

/* The ring passes all nodes: a cut between two halves is seen, wherever it is. */
TEST(the_ring_joins_all_nodes)
{
        number_nodes();
        for (uint64_t seed = 0; seed < 100; seed++) {
                size_t n_pairs, at = 0, passed = 0, step = 1 + 6;
                struct check_pair *v = pair_ring(nodes, 64, seed, &n_pairs);

                do {
                        size_t next = v[at].to;

                        for (at = 0; v[at].from != next; at += step)
                                ;
                        passed++;
                } while (at != 0);
                assert_int_equal(passed, 64);
                free(v);
        }
}

TEST(rounds_are_matchings_without_a_pair_twice)
{
        number_nodes();
        for (size_t n = 0; n < NODES_MAX; n++) {
                bool met[NODES_MAX][NODES_MAX] = { 0 };
                size_t rounds = pair_rounds(n), tests[NODES_MAX] = { 0 };

                for (size_t r = 0; r < rounds; r++) {
                        struct check_pair v[NODES_MAX];
                        bool busy[NODES_MAX] = { 0 };
                        size_t n_pairs = pair_round(nodes, n, r, v);

                        assert_int_equal(n_pairs, n / 2);
                        for (size_t i = 0; i < n_pairs; i++) {
                                size_t a = v[i].from - 1000, b = v[i].to - 1000;

                                assert_true(a < n && b < n && a != b && !busy[a] && !busy[b]);
                                assert_false(met[a][b] || met[b][a]);
                                busy[a] = busy[b] = met[a][b] = true;
                                tests[a]++;
                                tests[b]++;
                        }
                }
                for (size_t i = 0; n > 1 && i < n; i++)
                        assert_true(tests[i] >= rounds - n % 2);
        }
        assert_int_equal(pair_rounds(1), 0);
        assert_int_equal(pair_rounds(2), 1);
        assert_int_equal(pair_rounds(3), 3);
        assert_int_equal(pair_rounds(64), 6);
        assert_int_equal(pair_rounds(65), 8);
}
