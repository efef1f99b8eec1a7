/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated clusters whose slow nodes and links are known. */
#include "head/check/pair_book.h"

#include <stdio.h>

#include "head/check/pair_judge.h"
#include "lib/unit.h"

enum { NODES_MAX = 200, CLUSTERS = 1000, FAULTS = 3 };

/* A cluster: a healthy pair has 117 MB/s and 50 us, with noise; a measurement of the full network
 * is disturbed more often than one of suspects alone. */
struct cluster {
        uint64_t seed;
        size_t n;
        enum pair_metric metric; /* of the faults */
        bool bad[NODES_MAX];
        size_t n_bad, n_links, links[FAULTS][2];
        double factor; /* of the faults: so much worse */
};

static size_t nodes[NODES_MAX];
static char names[8][32];
static struct check_node hosts[8];

static int number_nodes(void **state UNUSED)
{
        for (size_t i = 0; i < NODES_MAX; i++)
                nodes[i] = i;
        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
                snprintf(names[i], sizeof(names[i]), "gpu%03zu", i + 1);
                hosts[i].host = names[i];
        }
        return 0;
}

static double draw(struct cluster *c)
{
        c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
        return (double)(c->seed >> 33) / (double)(1u << 31);
}

static size_t draw_below(struct cluster *c, size_t n)
{
        return (size_t)(draw(c) * (double)n);
}

static bool is_bad_link(const struct cluster *c, size_t a, size_t b)
{
        for (size_t i = 0; i < c->n_links; i++)
                if (c->links[i][0] == MIN(a, b) && c->links[i][1] == MAX(a, b))
                        return true;
        return false;
}

static bool has_fault(const struct cluster *c, size_t node)
{
        for (size_t i = 0; i < c->n_links; i++)
                if (c->links[i][0] == node || c->links[i][1] == node)
                        return true;
        return c->bad[node];
}

/* Links that the rounds measure, each with nodes of its own. */
static void add_bad_links(struct cluster *c)
{
        size_t want = c->n >= 8 ? draw_below(c, FAULTS + 1) : 0;

        for (int tries = 0; c->n_links < want && tries < 100; tries++) {
                struct check_pair v[NODES_MAX];
                size_t n = pair_round(nodes, c->n, draw_below(c, pair_rounds(c->n)), v);
                const struct check_pair *p = &v[draw_below(c, n)];

                if (has_fault(c, p->from) || has_fault(c, p->to))
                        continue;
                c->links[c->n_links][0] = MIN(p->from, p->to);
                c->links[c->n_links++][1] = MAX(p->from, p->to);
        }
}

static void make_cluster(struct cluster *c, uint64_t seed)
{
        *c = (struct cluster){ .seed = seed * 7919 + 1 };
        for (int i = 0; i < 10; i++)
                draw(c);
        c->n = 3 + draw_below(c, seed % 2 ? 14 : NODES_MAX - 2);
        c->metric = seed % 3 ? PAIR_BANDWIDTH : PAIR_LATENCY;
        c->factor = 3 + draw(c) * 50;
        for (size_t i = draw_below(c, MIN(c->n / 6, (size_t)FAULTS) + 1); i; i--) {
                size_t node = draw_below(c, c->n);

                c->n_bad += !c->bad[node];
                c->bad[node] = true;
        }
        add_bad_links(c);
}

static void measure(struct cluster *c, struct check_pair *p, bool crowded)
{
        double rate = 117e6 * (0.75 + 0.35 * draw(c)), s = 50e-6 * (0.8 + draw(c));
        bool slow = c->bad[p->from] || c->bad[p->to] || is_bad_link(c, p->from, p->to);

        if (slow && c->metric == PAIR_BANDWIDTH)
                rate /= c->factor;
        if (slow && c->metric == PAIR_LATENCY)
                s = 800e-6 * c->factor;
        if (draw(c) < (crowded ? 0.03 : 0.01)) {
                rate *= 0.1 + 0.3 * draw(c);
                s += 0.02 * draw(c);
        }
        p->told = true;
        p->result.sent = (uint64_t)rate;
        p->result.received = (uint64_t)(rate * (1 + draw(c)));
        p->result.latency_us = (uint32_t)(s * 1e6);
}

/* Measures what the book asks for, and returns after how many rounds it has enough. */
static size_t fill_book(struct cluster *c, struct pair_book *b)
{
        struct check_pair v[NODES_MAX];
        size_t n, rounds = 0;

        while ((n = pair_book_next(b, v)) > 0) {
                bool busy[NODES_MAX] = { 0 };

                assert_true(n <= c->n / 2);
                for (size_t i = 0; i < n; i++) {
                        assert_false(busy[v[i].from] || busy[v[i].to]);
                        busy[v[i].from] = busy[v[i].to] = true;
                        measure(c, &v[i], rounds < pair_rounds(c->n));
                }
                pair_book_take(b, v, n);
                rounds++;
        }
        return rounds;
}

static void expect_faults(const struct cluster *c, uint64_t seed, const struct pair_judgement *j,
                          bool any)
{
        for (size_t i = 0; i < c->n; i++)
                if (j->places[i].bad != (any && c->bad[i]))
                        fail_msg("cluster %llu: node %zu of %zu is called %s", (long long)seed, i,
                                 c->n, j->places[i].bad ? "bad" : "good");
        for (size_t i = 0; i < j->n_links; i++)
                if (!any || !is_bad_link(c, j->links[i]->a, j->links[i]->b))
                        fail_msg("cluster %llu: the link %zu - %zu is called bad", (long long)seed,
                                 j->links[i]->a, j->links[i]->b);
        assert_int_equal(j->n_links, any ? c->n_links : 0);
}

TEST(slow_nodes_and_links_of_a_thousand_clusters_are_found_and_no_other)
{
        size_t bad = 0, links = 0, most = 0;

        for (uint64_t seed = 0; seed < CLUSTERS; seed++) {
                struct cluster c;
                struct pair_book *b;
                size_t again;

                make_cluster(&c, seed);
                b = pair_book_create(nodes, c.n, NULL);
                again = fill_book(&c, b) - pair_rounds(c.n);
                most = MAX(most, again);
                for (int m = 0; m < PAIR_METRICS; m++) {
                        CLEANUP(pair_judgement_finish) struct pair_judgement j;

                        pair_book_judge(b, (enum pair_metric)m, &j);
                        expect_faults(&c, seed, &j, c.metric == (enum pair_metric)m);
                }
                pair_book_free(b);
                bad += c.n_bad;
                links += c.n_links;
        }
        assert_true(bad > 500 && links > 500);
        assert_in_range(most, 1, 12);
}

TEST(a_bad_node_of_three_is_found)
{
        struct cluster c = { .seed = 5, .n = 3, .bad = { [1] = true }, .factor = 20 };
        struct pair_book *b = pair_book_create(nodes, 3, NULL);
        CLEANUP(pair_judgement_finish) struct pair_judgement j;

        fill_book(&c, b);
        pair_book_judge(b, PAIR_BANDWIDTH, &j);
        assert_true(j.places[1].bad && !j.places[0].bad && !j.places[2].bad);
        pair_book_free(b);
}

/* --- NCCL ------------------------------------------------------------------------------------- */

/* Measures all that the book asks for; NCCL fails where @fails says so. */
static void fill_with_nccl(struct pair_book *b, bool (*fails)(size_t one, size_t other))
{
        struct check_pair v[NODES_MAX];
        size_t n;

        while ((n = pair_book_next(b, v)) > 0) {
                for (size_t i = 0; i < n; i++) {
                        v[i].told = true;
                        v[i].result = (struct measured_target){ .latency_us = 20,
                                                                .sent = 40000000000,
                                                                .received = 41000000000 };
                        if (fails(v[i].from, v[i].to))
                                v[i].result =
                                        (struct measured_target){ .error = MEASURE_NCCL_FAILED };
                }
                pair_book_take(b, v, n);
                for (size_t i = 0; i < n; i++)
                        if (v[i].result.error)
                                pair_book_explain(b, &v[i], "no route");
        }
}

static void judge_with_nccl(struct check_report *r, bool (*fails)(size_t one, size_t other))
{
        struct pair_book *b = pair_book_create(nodes, 8, PAIR_NCCL);

        fill_with_nccl(b, fails);
        pair_judge(r, b, nodes, 8);
        pair_book_free(b);
}

static bool fails_at_fifth(size_t one, size_t other)
{
        return one == 4 || other == 4;
}

static bool fails_everywhere(size_t one UNUSED, size_t other UNUSED)
{
        return true;
}

static size_t link_ends[2];

static bool fails_on_a_link(size_t one, size_t other)
{
        return MIN(one, other) == link_ends[0] && MAX(one, other) == link_ends[1];
}

/* --- the lines of the table ------------------------------------------------------------------- */

static const struct check_line *judge_eight(struct cluster *c, struct check_report *r)
{
        struct pair_book *b = pair_book_create(nodes, c->n, NULL);

        fill_book(c, b);
        pair_judge(r, b, nodes, c->n);
        pair_book_free(b);
        assert_int_equal(r->n, PAIR_METRICS);
        assert_string_equal(r->v[0].name, "net.bandwidth");
        assert_string_equal(r->v[1].name, "net.latency");
        return &r->v[0];
}

TEST(a_slow_node_is_told_with_its_peers)
{
        struct cluster c = { .seed = 5, .n = 8, .bad = { [4] = true }, .factor = 50 };
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };
        const struct check_line *l = judge_eight(&c, &r);

        assert_int_equal(l->of[4].level, CHECK_WARN);
        assert_int_equal(l->count[CHECK_WARN], 1);
        assert_int_equal(l->count[CHECK_PASS], 7);
        assert_int_equal(l->of[4].others, 7);
        assert_non_null(strstr(l->of[4].cause, "gpu005 is slow with each peer (6 of 6): "));
        assert_non_null(strstr(l->of[4].cause, " Mbit/s, 7 others have "));
        assert_int_equal(r.v[1].count[CHECK_PASS], 8);
}

TEST(a_slow_link_is_told_with_both_ends)
{
        struct cluster c = { .seed = 5, .n = 8, .n_links = 1, .factor = 50 };
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };
        const struct check_line *l;
        struct check_pair v[8];

        pair_round(nodes, 8, 1, v);
        c.links[0][0] = MIN(v[0].from, v[0].to);
        c.links[0][1] = MAX(v[0].from, v[0].to);
        l = judge_eight(&c, &r);
        assert_int_equal(l->count[CHECK_WARN], 2);
        assert_string_equal(l->of[v[0].from].value, l->of[v[0].to].value);
        assert_non_null(strstr(l->of[v[0].to].cause, "is slow, not its nodes: "));
}

TEST(a_node_where_nccl_fails_is_told)
{
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };

        judge_with_nccl(&r, fails_at_fifth);
        assert_int_equal(r.v[0].count[CHECK_FAIL], 1);
        assert_int_equal(r.v[0].count[CHECK_PASS], 7);
        assert_non_null(strstr(r.v[0].of[4].cause, "NCCL fails between gpu005 and each of "));
        assert_non_null(strstr(r.v[0].of[4].cause, " peers: no route"));
        assert_string_equal(r.v[0].summary, "320.0 Gbit/s to 320.0 Gbit/s over NCCL");
        assert_int_equal(r.v[1].count[CHECK_PASS], 7);
        assert_string_equal(r.v[1].of[4].cause, "no peer could be measured");
}

TEST(a_link_on_which_nccl_fails_is_told_with_both_ends)
{
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };
        struct check_pair v[8];

        pair_round(nodes, 8, 1, v);
        link_ends[0] = MIN(v[0].from, v[0].to);
        link_ends[1] = MAX(v[0].from, v[0].to);
        judge_with_nccl(&r, fails_on_a_link);
        assert_int_equal(r.v[0].count[CHECK_FAIL], 2);
        assert_non_null(strstr(r.v[0].of[v[0].to].cause, ", not with their other peers: no route"));
        assert_int_equal(r.v[1].count[CHECK_PASS], 8);
}

TEST(nccl_that_fails_between_all_nodes_is_no_pass)
{
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };

        judge_with_nccl(&r, fails_everywhere);
        assert_int_equal(r.v[0].count[CHECK_FAIL], 8);
        assert_int_equal(r.v[1].count[CHECK_NOT_RUN], 8);
}

TEST(a_single_pair_is_measured_and_not_judged)
{
        struct cluster c = { .seed = 5, .n = 2, .bad = { true }, .factor = 50 };
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 8 };
        const struct check_line *l = judge_eight(&c, &r);

        assert_int_equal(l->of[0].level, CHECK_NOT_RUN);
        assert_non_null(strstr(l->of[0].value, "Mbit/s"));
        check_report_finish(&r);
        r = (struct check_report){ .nodes = hosts, .n_nodes = 2 };
        pair_judge(&r, NULL, NULL, 0);
        assert_string_equal(r.v[0].of[1].cause, "measured with --pairs only");
}

TEST(a_reason_names_the_option_only_where_it_would_measure)
{
        struct pair_book *b;
        CLEANUP(check_report_finish) struct check_report r = { .nodes = hosts, .n_nodes = 2 };

        /* One of two nodes is reached. */
        pair_judge(&r, NULL, nodes, 1);
        assert_string_equal(r.v[1].of[0].cause, "measured with --pairs only");
        check_report_finish(&r);
        r = (struct check_report){ .nodes = hosts, .n_nodes = 2 };
        b = pair_book_create(nodes, 1, NULL);
        pair_judge(&r, b, nodes, 1);
        assert_string_equal(r.v[1].of[0].cause, "there is no other node to reach");
        pair_book_free(b);
        check_report_finish(&r);
        r = (struct check_report){ .nodes = hosts, .n_nodes = 1 };
        pair_judge(&r, NULL, nodes, 1);
        assert_string_equal(r.v[0].of[0].cause, "there is no other node to reach");
}

UNIT_MAIN(number_nodes, NULL)
