/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/baseline.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/unit.h"

enum { NODES = 4 };

static const char *const names[NODES] = { "gpu001", "gpu002", "gpu003", "gpu004" };
static const size_t places[NODES] = { 0, 1, 2, 3 };
static struct checked facts[NODES];
static struct check_node nodes[NODES];
static struct check_report report;

static void make_nodes(void)
{
        for (size_t i = 0; i < NODES; i++) {
                checked_add(&facts[i], "kernel", "6.1.0", "");
                checked_add(&facts[i], "shm.size", "1000000", "");
                checked_add(&facts[i], "tmp.free", "5000000", "");
                checked_add(&facts[i], "thp", "", "cannot read");
                nodes[i] = (struct check_node){ .host = names[i], .facts = &facts[i] };
        }
        report = (struct check_report){ .nodes = nodes, .n_nodes = NODES };
}

static int drop_nodes(void **state UNUSED)
{
        check_report_finish(&report);
        for (size_t i = 0; i < NODES; i++)
                checked_finish(&facts[i]);
        return 0;
}

static void set_fact(size_t node, size_t i, const char *value)
{
        snprintf(facts[node].facts[i].value, CHECK_VALUE, "%s", value);
}

/* Measures all rounds: a pair with @slow_a and @slow_b, or with @slow_a and any other if they are
 * equal, has @rate, the others 117.5 MB/s. */
static struct pair_book *measure_all(const json_t *base, size_t slow_a, size_t slow_b, double rate)
{
        struct pair_book *b = pair_book_create(places, NODES, NULL);
        struct check_pair v[NODES];
        size_t n;

        if (base)
                baseline_expect(base, b, names, NODES);
        while ((n = pair_book_next(b, v)) > 0) {
                for (size_t i = 0; i < n; i++) {
                        bool a = v[i].from == slow_a || v[i].to == slow_a;
                        bool slow =
                                a && (slow_a == slow_b || v[i].from == slow_b || v[i].to == slow_b);

                        v[i].told = true;
                        v[i].result.sent = v[i].result.received = (uint64_t)(slow ? rate : 117.5e6);
                        v[i].result.latency_us = 50;
                }
                pair_book_take(b, v, n);
        }
        return b;
}

static json_t *make_base(void)
{
        struct pair_book *b = measure_all(NULL, NODES, NODES, 0);
        json_t *j = baseline_describe(&report, b, places, NODES);

        pair_book_free(b);
        return j;
}

static json_t *saved;

static int set_up(void **state UNUSED)
{
        make_nodes();
        saved = make_base();
        return 0;
}

static int tear_down(void **state)
{
        json_decref(saved);
        return drop_nodes(state);
}

static const struct check_result *judge(const json_t *base, const struct pair_book *b, size_t node)
{
        baseline_judge(&report, base, b, places, NODES);
        assert_string_equal(report.v[report.n - 1].name, "baseline");
        return &report.v[report.n - 1].of[node];
}

TEST_WITH(set_up, tear_down, a_baseline_has_facts_and_measurements)
{
        json_t *node;

        node = json_object_get(json_object_get(saved, "nodes"), "gpu002");
        assert_int_equal(json_integer_value(json_object_get(saved, "v")), 1);
        assert_int_equal(strlen(json_string_value(json_object_get(saved, "saved"))), 20);
        assert_int_equal(json_number_value(json_object_get(node, "bandwidth_mbit")), 940);
        assert_int_equal(json_number_value(json_object_get(node, "latency_us")), 50);
        node = json_object_get(node, "facts");
        assert_string_equal(json_string_value(json_object_get(node, "kernel")), "6.1.0");
        assert_null(json_object_get(node, "thp"));
        assert_int_equal(json_array_size(json_object_get(saved, "pairs")), 4);
}

TEST_WITH(set_up, tear_down, the_same_passes)
{
        struct pair_book *b;

        b = measure_all(saved, 1, 1, 0.8 * 117.5e6);
        set_fact(1, 1, "1010000");
        set_fact(1, 2, "1");
        assert_int_equal(judge(saved, b, 1)->level, CHECK_PASS);
        assert_string_equal(judge(saved, b, 1)->value, "as before");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES);
        pair_book_free(b);
}

TEST_WITH(set_up, tear_down, a_fact_that_has_changed_is_told_with_then_and_now)
{
        set_fact(2, 0, "6.1.9");
        assert_string_equal(judge(saved, NULL, 2)->cause,
                            "gpu003 is not as in the baseline: kernel 6.1.9, was 6.1.0");
        assert_int_equal(report.v[0].of[2].level, CHECK_WARN);
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES - 1);
}

TEST_WITH(NULL, drop_nodes, a_size_is_told_as_in_the_table)
{
        json_t *j;

        make_nodes();
        j = make_base();
        set_fact(2, 1, "2000000");
        assert_string_equal(judge(j, NULL, 2)->value, "shm.size 2.0 MB, was 1.0 MB");
        set_fact(2, 1, "1060000");
        assert_string_equal(judge(j, NULL, 2)->value, "shm.size 1.1 MB, was 1.0 MB");
        set_fact(2, 1, "940000");
        assert_string_equal(judge(j, NULL, 2)->value, "shm.size 940 kB, was 1.0 MB");
        json_decref(j);
        set_fact(2, 1, "1050000");
        j = make_base();
        set_fact(2, 1, "1149000");
        /* Both would be 1.1 MB. */
        assert_string_equal(judge(j, NULL, 2)->value, "shm.size 1149000, was 1050000");
        json_decref(j);
}

TEST_WITH(NULL, drop_nodes, a_fact_without_a_value_now_is_not_as_before)
{
        json_t *j;

        make_nodes();
        for (size_t i = 0; i < NODES; i++)
                checked_add(&facts[i], "hugepages", "0", "");
        j = make_base();
        snprintf(facts[1].facts[1].problem, CHECK_PROBLEM, "cannot read");
        /* tmp.free may change at any time. */
        snprintf(facts[1].facts[2].problem, CHECK_PROBLEM, "cannot read");
        assert_int_equal(judge(j, NULL, 1)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(j, NULL, 1)->cause, "shm.size has no value now");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES - 1);
        snprintf(facts[1].facts[4].problem, CHECK_PROBLEM, "cannot read");
        assert_string_equal(judge(j, NULL, 1)->cause, "shm.size and 1 more have no value now");
        set_fact(1, 0, "6.1.9");
        assert_string_equal(judge(j, NULL, 1)->value, "kernel 6.1.9, was 6.1.0");
        checked_finish(&facts[2]);
        assert_int_equal(judge(j, NULL, 2)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(j, NULL, 2)->cause, "the node has not answered in time");
        json_decref(j);
}

TEST_WITH(set_up, tear_down, a_node_with_less_bandwidth_is_told_without_the_peers)
{
        struct pair_book *b;

        b = measure_all(saved, 1, 1, 0.6 * 117.5e6);
        assert_string_equal(judge(saved, b, 1)->value, "bandwidth 564 Mbit/s, was 940 Mbit/s");
        assert_int_equal(report.v[0].count[CHECK_WARN], 1);
        pair_book_free(b);
}

TEST_WITH(set_up, tear_down, a_pair_with_less_bandwidth_is_told_at_both_ends)
{
        struct pair_book *b;
        json_t *pair;
        size_t ends[2] = { 0 };

        pair = json_array_get(json_object_get(saved, "pairs"), 0);
        for (size_t i = 0; i < NODES; i++) {
                if (!strcmp(names[i], json_string_value(json_object_get(pair, "a"))))
                        ends[0] = i;
                if (!strcmp(names[i], json_string_value(json_object_get(pair, "b"))))
                        ends[1] = i;
        }
        b = measure_all(saved, ends[0], ends[1], 0.6 * 117.5e6);
        assert_non_null(strstr(judge(saved, b, ends[0])->value, " 564 Mbit/s, was 940 Mbit/s"));
        assert_int_equal(strncmp(report.v[0].of[ends[0]].value, "link gpu", 8), 0);
        assert_string_equal(report.v[0].of[ends[0]].value, report.v[0].of[ends[1]].value);
        assert_int_equal(report.v[0].count[CHECK_WARN], 2);
        pair_book_free(b);
}

TEST(a_pair_is_measured_again_before_it_is_told)
{
        struct pair_book *b = pair_book_create(places, NODES, NULL);
        struct check_pair v[NODES];
        size_t n = pair_book_next(b, v);
        size_t from = v[0].from, to = v[0].to;

        pair_book_expect(b, from, to, 100e6);
        for (int round = 0; n; round++) {
                for (size_t i = 0; i < n; i++) {
                        v[i].told = true;
                        v[i].result.sent = v[i].result.received = round ? 117500000 : 80000000;
                }
                pair_book_take(b, v, n);
                n = pair_book_next(b, v);
        }
        for (size_t i = 0; i < pair_rounds(NODES); i++) {
                size_t n_edges;
                const struct pair_edge *e = pair_book_edges(b, &n_edges);

                if (e[i].a == from && e[i].b == to)
                        assert_true(e[i].tries == 2 && e[i].value[PAIR_BANDWIDTH] > 117e6);
        }
        pair_book_free(b);
}

TEST_WITH(set_up, tear_down, a_node_that_is_new_is_not_run)
{
        json_object_del(json_object_get(saved, "nodes"), "gpu004");
        assert_int_equal(judge(saved, NULL, 3)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(saved, NULL, 3)->cause, "the baseline does not have the node");
}

static void expect_refused(const char *text, const char *why)
{
        char path[] = "baseline-XXXXXX";
        int fd = mkstemp(path);
        struct error err = { 0 };

        assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
        assert_null(baseline_read(path, &err));
        unlink(path);
        if (!strstr(err.text, why))
                fail_msg("%s", err.text);
}

TEST_WITH(NULL, drop_nodes, only_files_of_save_are_read)
{
        struct error err;
        json_t *j;

        expect_refused("not JSON", ": line 1 is no JSON: ");
        expect_refused("{\"v\": 2, \"nodes\": {}, \"pairs\": []}", ": not written by");
        expect_refused("{\"v\": 1, \"nodes\": [], \"pairs\": []}", ": not written by");
        expect_refused("[]", ": not written by");
        assert_null(baseline_read("/nowhere/at/all", &err));
        assert_string_equal(err.text,
                            "cannot read the baseline /nowhere/at/all: No such file or directory");
        make_nodes();
        j = make_base();
        assert_int_equal(baseline_write("baseline.json", j, &err), 0);
        json_decref(j);
        j = baseline_read("baseline.json", &err);
        assert_non_null(j);
        assert_int_equal(judge(j, NULL, 0)->level, CHECK_PASS);
        assert_true(baseline_write("/nowhere/at/all", j, &err) < 0);
        json_decref(j);
        unlink("baseline.json");
}

/* Members of other kinds, as in a file written by hand. */
TEST_WITH(NULL, drop_nodes, strange_members_do_no_harm)
{
        struct pair_book *b;
        json_t *j = json_loads("{\"v\": 1, \"nodes\": {\"gpu001\": 3, \"gpu002\": {\"facts\": [], "
                               "\"bandwidth_mbit\": \"x\"}}, \"pairs\": [7, {\"a\": 1}, {\"a\": "
                               "\"gpu001\", \"b\": \"gpu001\", \"bandwidth_mbit\": -1}]}",
                               0, NULL);

        assert_non_null(j);
        make_nodes();
        b = measure_all(j, 1, 1, 117.5e6);
        assert_int_equal(judge(j, b, 0)->level, CHECK_PASS);
        pair_book_free(b);
        json_decref(j);
}
