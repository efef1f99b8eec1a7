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
static struct pair_book *book; /* NULL = no measurements */
static json_t *saved;

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
static void measure_all(const json_t *base, size_t slow_a, size_t slow_b, double rate)
{
        struct check_pair v[NODES];
        size_t n;

        book = pair_book_create(places, NODES, NULL);
        if (base)
                baseline_expect(base, book, names, NODES);
        while ((n = pair_book_next(book, v)) > 0) {
                for (size_t i = 0; i < n; i++) {
                        bool a = v[i].from == slow_a || v[i].to == slow_a;
                        bool slow =
                                a && (slow_a == slow_b || v[i].from == slow_b || v[i].to == slow_b);

                        v[i].told = true;
                        v[i].result.sent = v[i].result.received = (uint64_t)(slow ? rate : 117.5e6);
                        v[i].result.latency_us = 50;
                }
                pair_book_take(book, v, n);
        }
}

static void drop_measurements(void)
{
        pair_book_free(book);
        book = NULL;
}

/* Makes a baseline of the facts and of good measurements. */
static void save_base(void)
{
        measure_all(NULL, NODES, NODES, 0);
        json_decref(saved);
        saved = baseline_describe(&report, book, places, NODES);
        drop_measurements();
}

static int set_up(void **state UNUSED)
{
        make_nodes();
        saved = NULL;
        save_base();
        return 0;
}

static int tear_down(void **state)
{
        drop_measurements();
        json_decref(saved);
        return drop_nodes(state);
}

#define TEST_BASE(name) TEST_WITH(set_up, tear_down, name)

static const struct check_result *judge(size_t node)
{
        baseline_judge(&report, saved, book, places, NODES);
        assert_string_equal(report.v[report.n - 1].name, "baseline");
        return &report.v[report.n - 1].of[node];
}

TEST_BASE(a_baseline_has_facts_and_measurements)
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

TEST_BASE(the_same_passes)
{
        measure_all(saved, 1, 1, 0.8 * 117.5e6);
        set_fact(1, 1, "1010000");
        set_fact(1, 2, "1");
        assert_int_equal(judge(1)->level, CHECK_PASS);
        assert_string_equal(judge(1)->value, "as before");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES);
}

TEST_BASE(a_fact_that_has_changed_is_told_with_then_and_now)
{
        set_fact(2, 0, "6.1.9");
        assert_string_equal(judge(2)->cause,
                            "gpu003 is not as in the baseline: kernel 6.1.9, was 6.1.0");
        assert_int_equal(report.v[0].of[2].level, CHECK_WARN);
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES - 1);
}

TEST_BASE(a_size_is_told_as_in_the_table)
{
        set_fact(2, 1, "2000000");
        assert_string_equal(judge(2)->value, "shm.size 2.0 MB, was 1.0 MB");
        set_fact(2, 1, "1060000");
        assert_string_equal(judge(2)->value, "shm.size 1.1 MB, was 1.0 MB");
        set_fact(2, 1, "940000");
        assert_string_equal(judge(2)->value, "shm.size 940 kB, was 1.0 MB");
        set_fact(2, 1, "1050000");
        save_base();
        set_fact(2, 1, "1149000");
        /* Both would be 1.1 MB. */
        assert_string_equal(judge(2)->value, "shm.size 1149000, was 1050000");
}

TEST_BASE(a_fact_without_a_value_now_is_not_as_before)
{
        for (size_t i = 0; i < NODES; i++)
                checked_add(&facts[i], "hugepages", "0", "");
        save_base();
        snprintf(facts[1].facts[1].problem, CHECK_PROBLEM, "cannot read");
        /* tmp.free may change at any time. */
        snprintf(facts[1].facts[2].problem, CHECK_PROBLEM, "cannot read");
        assert_int_equal(judge(1)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(1)->cause, "shm.size has no value now");
        assert_int_equal(report.v[0].count[CHECK_PASS], NODES - 1);
        snprintf(facts[1].facts[4].problem, CHECK_PROBLEM, "cannot read");
        assert_string_equal(judge(1)->cause, "shm.size and 1 more have no value now");
        set_fact(1, 0, "6.1.9");
        assert_string_equal(judge(1)->value, "kernel 6.1.9, was 6.1.0");
        checked_finish(&facts[2]);
        assert_int_equal(judge(2)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(2)->cause, "the node has not answered in time");
}

TEST_BASE(a_node_with_less_bandwidth_is_told_without_the_peers)
{
        measure_all(saved, 1, 1, 0.6 * 117.5e6);
        assert_string_equal(judge(1)->value, "bandwidth 564 Mbit/s, was 940 Mbit/s");
        assert_int_equal(report.v[0].count[CHECK_WARN], 1);
}

TEST_BASE(a_pair_with_less_bandwidth_is_told_at_both_ends)
{
        json_t *pair;
        size_t ends[2] = { 0 };

        pair = json_array_get(json_object_get(saved, "pairs"), 0);
        for (size_t i = 0; i < NODES; i++) {
                if (!strcmp(names[i], json_string_value(json_object_get(pair, "a"))))
                        ends[0] = i;
                if (!strcmp(names[i], json_string_value(json_object_get(pair, "b"))))
                        ends[1] = i;
        }
        measure_all(saved, ends[0], ends[1], 0.6 * 117.5e6);
        assert_non_null(strstr(judge(ends[0])->value, " 564 Mbit/s, was 940 Mbit/s"));
        assert_int_equal(strncmp(report.v[0].of[ends[0]].value, "link gpu", 8), 0);
        assert_string_equal(report.v[0].of[ends[0]].value, report.v[0].of[ends[1]].value);
        assert_int_equal(report.v[0].count[CHECK_WARN], 2);
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

TEST_BASE(a_node_that_is_new_is_not_run)
{
        json_object_del(json_object_get(saved, "nodes"), "gpu004");
        assert_int_equal(judge(3)->level, CHECK_NOT_RUN);
        assert_string_equal(judge(3)->cause, "the baseline does not have the node");
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

TEST_BASE(only_files_of_save_are_read)
{
        struct error err;

        expect_refused("not JSON", ": line 1 is no JSON: ");
        expect_refused("{\"v\": 2, \"nodes\": {}, \"pairs\": []}", ": not written by");
        expect_refused("{\"v\": 1, \"nodes\": [], \"pairs\": []}", ": not written by");
        expect_refused("[]", ": not written by");
        assert_null(baseline_read("/nowhere/at/all", &err));
        assert_string_equal(err.text,
                            "cannot read the baseline /nowhere/at/all: No such file or directory");
        assert_int_equal(baseline_write("baseline.json", saved, &err), 0);
        json_decref(saved);
        saved = baseline_read("baseline.json", &err);
        assert_non_null(saved);
        assert_int_equal(judge(0)->level, CHECK_PASS);
        assert_true(baseline_write("/nowhere/at/all", saved, &err) < 0);
        unlink("baseline.json");
}

/* Members of other kinds, as in a file written by hand. */
TEST_BASE(strange_members_do_no_harm)
{
        json_decref(saved);
        saved = json_loads("{\"v\": 1, \"nodes\": {\"gpu001\": 3, \"gpu002\": {\"facts\": [], "
                           "\"bandwidth_mbit\": \"x\"}}, \"pairs\": [7, {\"a\": 1}, {\"a\": "
                           "\"gpu001\", \"b\": \"gpu001\", \"bandwidth_mbit\": -1}]}",
                           0, NULL);
        assert_non_null(saved);
        measure_all(saved, 1, 1, 117.5e6);
        assert_int_equal(judge(0)->level, CHECK_PASS);
}
