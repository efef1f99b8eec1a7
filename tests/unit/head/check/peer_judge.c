/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/peer_judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/unit.h"

enum { NODES = 16 };

static char names[NODES][32];
static struct check_node nodes[NODES];
static const char *refusals[NODES];
static size_t all[NODES];
static struct check_pair *pairs;
static size_t n_pairs;
static struct check_report report;

/* All nodes reach each other. */
static void make_peers(size_t n)
{
        for (size_t i = 0; i < n; i++) {
                all[i] = i;
                snprintf(names[i], sizeof(names[i]), "n%zu", i + 1);
                nodes[i] = (struct check_node){ .host = names[i] };
                refusals[i] = NULL;
        }
        report = (struct check_report){ .nodes = nodes, .n_nodes = n };
        pairs = pair_ring(all, n, 1, &n_pairs);
        for (size_t i = 0; i < n_pairs; i++) {
                pairs[i].told = true;
                snprintf(pairs[i].addr, sizeof(pairs[i].addr), "10.0.0.%zu", pairs[i].to + 1);
        }
}

static void drop_peers(void)
{
        check_report_finish(&report);
        free(pairs);
}

static const struct check_result *judge(size_t node)
{
        if (!report.n)
                peer_judge(&report, pairs, n_pairs, refusals);
        assert_string_equal(report.v[0].name, "net.peers");
        return &report.v[0].of[node];
}

static size_t count_failed(void)
{
        judge(0);
        return report.v[0].count[CHECK_FAIL];
}

TEST(peers_that_answer_pass)
{
        make_peers(NODES);
        assert_int_equal(judge(3)->level, CHECK_PASS);
        assert_string_equal(judge(3)->value, "5 peers");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES);
        drop_peers();
}

TEST(a_node_that_no_peer_reaches_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].to == 6)
                        pairs[i].result.error = ECONNREFUSED;
        assert_int_equal(count_failed(), 1);
        assert_string_equal(judge(6)->cause,
                            "n7: none of 5 peers reaches 10.0.0.7: refused, as a firewall may do");
        drop_peers();
}

TEST(a_node_that_reaches_no_peer_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].from == 6)
                        pairs[i].result.error = EHOSTUNREACH;
        assert_int_equal(count_failed(), 1);
        assert_string_equal(judge(6)->value, "reaches none of 5 peers: no route");
        drop_peers();
}

TEST(a_node_that_is_cut_off_is_named_alone)
{
        make_peers(NODES);
        for (size_t i = 0; i < n_pairs; i++)
                if (pairs[i].from == 6 || pairs[i].to == 6)
                        pairs[i].result.error = ETIMEDOUT;
        assert_int_equal(count_failed(), 1);
        assert_int_equal(judge(6)->level, CHECK_FAIL);
        drop_peers();
}

TEST(of_a_single_connection_both_ends_are_named)
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
        drop_peers();
}

TEST(what_was_not_tried_is_not_run)
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
        drop_peers();
}
