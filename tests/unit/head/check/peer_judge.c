/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/peer_judge.h"

#include <errno.h>
#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"

enum { NODES = 16, NODES_MAX = 64 };

static char names[NODES_MAX][32];
static struct check_node nodes[NODES_MAX];
static const char *refusals[NODES_MAX];
static size_t all[NODES_MAX];
static struct check_pair *pairs;
static size_t n_pairs;
static struct check_report report;
static const struct peer_blame *how;

/* All nodes reach each other. */
static void make_ring(size_t n, uint64_t seed)
{
        how = NULL;
        for (size_t i = 0; i < n; i++) {
                all[i] = i;
                snprintf(names[i], sizeof(names[i]), "n%zu", i + 1);
                nodes[i] = (struct check_node){ .host = names[i] };
                refusals[i] = NULL;
        }
        report = (struct check_report){ .nodes = nodes, .n_nodes = n };
        pairs = pair_ring(all, n, seed, &n_pairs);
        for (size_t i = 0; i < n_pairs; i++) {
                pairs[i].told = true;
                snprintf(pairs[i].addr, sizeof(pairs[i].addr), "10.0.0.%zu", pairs[i].to + 1);
        }
}

static void make_peers(size_t n)
{
        make_ring(n, 1);
}

static void drop_peers(void)
{
        check_report_finish(&report);
        free(pairs);
        pairs = NULL;
}

static int tear_down(void **state UNUSED)
{
        drop_peers();
        return 0;
}

static const struct check_result *judge(size_t node)
{
        if (!report.n)
                peer_judge(&report, pairs, n_pairs, refusals, how);
        assert_string_equal(report.v[0].name, "net.peers");
        return &report.v[0].of[node];
}

static size_t count_failed(void)
{
        judge(0);
        return report.v[0].count[CHECK_FAIL];
}

TEST_WITH(NULL, tear_down, peers_that_answer_pass)
{
        make_peers(NODES);
        assert_int_equal(judge(3)->level, CHECK_PASS);
        assert_string_equal(judge(3)->value, "5 peers");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES);
}

TEST_WITH(NULL, tear_down, a_node_that_no_peer_reaches_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].to == 6)
                        pairs[i].result.error = ECONNREFUSED;
        assert_int_equal(count_failed(), 1);
        assert_string_equal(judge(6)->cause,
                            "n7: none of 5 peers reaches 10.0.0.7: refused, as a firewall may do");
}

TEST_WITH(NULL, tear_down, a_node_that_reaches_no_peer_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].from == 6)
                        pairs[i].result.error = EHOSTUNREACH;
        assert_int_equal(count_failed(), 1);
        assert_string_equal(judge(6)->value, "reaches none of 5 peers: no route");
}

TEST_WITH(NULL, tear_down, a_node_that_is_cut_off_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].from == 6 || pairs[i].to == 6)
                        pairs[i].result.error = ETIMEDOUT;
        assert_int_equal(count_failed(), 1);
        assert_int_equal(judge(6)->level, CHECK_FAIL);
}

TEST_WITH(NULL, tear_down, of_a_single_connection_both_ends_are_named)
{
        make_peers(NODES);
        pairs[0].result.error = ETIMEDOUT;
        assert_int_equal(count_failed(), 2);
        assert_string_equal(judge(pairs[0].from)->value, judge(pairs[0].to)->value);
        assert_non_null(strstr(judge(pairs[0].to)->cause, " does not reach n"));
        assert_non_null(strstr(judge(pairs[0].to)->cause, ": no answer, as behind a firewall"));
        drop_peers();
        make_peers(2);
        pairs[0].result.error = ECONNRESET;
        assert_int_equal(count_failed(), 2);
}

TEST_WITH(NULL, tear_down, what_was_not_tried_is_not_run)
{
        make_peers(3);
        for (size_t i = 0; i < n_pairs; i++)
                pairs[i].told = pairs[i].from != 1 && pairs[i].to != 1;
        refusals[1] = "cannot open a port: Too many open files";
        assert_int_equal(judge(0)->level, CHECK_PASS);
        assert_int_equal(judge(1)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(1)->cause, refusals[1]);
        drop_peers();
        make_peers(1);
        assert_int_equal(judge(0)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(0)->cause, "there is no other node to reach");
}

TEST_WITH(NULL, tear_down, a_node_that_listens_while_no_peer_does_is_told_so)
{
        make_peers(3);
        for (size_t i = 0; i < n_pairs; i++)
                pairs[i].told = false;
        refusals[0] = refusals[2] = "cannot open a port: Too many open files";
        assert_int_equal(judge(1)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(1)->cause, "no peer could be tried");
}

/* As of the ring and of a measurement. */
TEST_WITH(NULL, tear_down, two_tries_of_a_pair_are_one_connection)
{
        size_t from, to;

        make_peers(NODES);
        pairs[0].result.error = ETIMEDOUT;
        from = pairs[0].from;
        to = pairs[0].to;
        pairs = xrealloc(pairs, n_pairs + 1, sizeof(*pairs));
        pairs[n_pairs++] = pairs[0];
        assert_int_equal(count_failed(), 2);
        assert_null(strstr(judge(from)->value, "and others"));
        drop_peers();
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].to == to)
                        pairs[i].result.error = ETIMEDOUT;
        pairs = xrealloc(pairs, n_pairs + 1, sizeof(*pairs));
        pairs[n_pairs++] = pairs[0];
        assert_int_equal(strncmp(judge(to)->value, "none of 5 peers reaches", 23), 0);
}

TEST_WITH(NULL, tear_down, of_two_equal_ends_one_may_be_left_out)
{
        static const struct peer_blame one = { NULL };

        make_peers(NODES);
        pairs[0].result.error = ETIMEDOUT;
        how = &one;
        assert_int_equal(count_failed(), 1);
        assert_int_equal(judge(MAX(pairs[0].from, pairs[0].to))->level, CHECK_FAIL);
        drop_peers();
        make_peers(2);
        pairs[0].result.error = pairs[1].result.error = ETIMEDOUT;
        how = &one;
        assert_int_equal(count_failed(), 1);
        assert_int_equal(judge(1)->level, CHECK_FAIL);
}

TEST_WITH(NULL, tear_down, a_node_that_is_new_is_to_blame_first)
{
        bool is_new[NODES] = { 0 };
        const struct peer_blame blame = { is_new };

        make_peers(NODES);
        pairs[0].result.error = ETIMEDOUT;
        is_new[MIN(pairs[0].from, pairs[0].to)] = true;
        how = &blame;
        assert_int_equal(count_failed(), 1);
        assert_int_equal(judge(MIN(pairs[0].from, pairs[0].to))->level, CHECK_FAIL);
}

TEST(without_any_connection_all_nodes_fail)
{
        static const struct peer_blame one = { NULL };

        for (size_t n = 3; n <= NODES; n++) {
                make_peers(n);
                for (size_t i = 0; i < n_pairs; i++)
                        pairs[i].result.error = EADDRNOTAVAIL;
                how = n % 2 ? &one : NULL;
                assert_int_equal(count_failed(), n);
                drop_peers();
        }
}

/* Breaks the first three connections of @node to others than @other. */
static void break_three(size_t node, size_t other)
{
        size_t n = 0;

        for (size_t i = 0; i < n_pairs && n < 3; i++)
                if (pairs[i].from == node && pairs[i].to != other) {
                        pairs[i].result.error = ETIMEDOUT;
                        n++;
                }
        assert_int_equal(n, 3);
}

/* Returns a connection between nodes without a broken one; NULL = there is none. */
static struct check_pair *find_whole_pair(size_t n)
{
        bool *broken = xcalloc(n, sizeof(*broken));
        struct check_pair *found = NULL;

        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].result.error)
                        broken[pairs[i].from] = broken[pairs[i].to] = true;
        for (size_t i = 0; i < n_pairs && !found; i++)
                if (!broken[pairs[i].from] && !broken[pairs[i].to])
                        found = &pairs[i];
        free(broken);
        return found;
}

/* Two nodes do not reach three of their peers each, and one connection of others is broken. */
TEST(seeded_clusters_blame_the_node_with_more_broken_connections)
{
        static const struct peer_blame one = { NULL };

        for (uint64_t seed = 1; seed <= 300; seed++) {
                size_t n = 8 + seed % 57, bad = seed * 5 % n, other = (bad + 1 + seed % 3) % n;
                struct check_pair *link;

                make_ring(n, seed);
                break_three(bad, other);
                break_three(other, bad);
                link = find_whole_pair(n);
                if (link)
                        link->result.error = ECONNREFUSED;
                how = seed % 2 ? &one : NULL;
                if (count_failed() != 2 + (link ? how ? 1 : 2 : 0))
                        fail_msg("seed %d: %zu nodes fail", (int)seed, count_failed());
                assert_int_equal(judge(bad)->level, CHECK_FAIL);
                assert_int_equal(judge(other)->level, CHECK_FAIL);
                assert_true(!link || judge(MAX(link->from, link->to))->level == CHECK_FAIL);
                drop_peers();
        }
}
