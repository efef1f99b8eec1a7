/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/memory.h"
#include "head/metrics/metrics.h"
#include "lib/unit.h"
#include "wire/msg.h"

static char first_name[] = "gpu001", second_name[] = "a\"b\\c\nd";
static struct host two_hosts[] = { { .name = first_name }, { .name = second_name } };
static const struct hosts hosts = { .v = two_hosts, .n = 2 };
static struct plan_node nodes[] = { { .host = 0 }, { .host = 1 } };
static struct plan_rank ranks[] = { { .rank = 0, .node = 0 }, { .rank = 1, .node = 1 } };
static struct plan_world worlds[] = { { 0, 1, 1 }, { 1, 1, 1 } };
static const struct plan plan = { nodes, 2, ranks, 2, 2, worlds, 2 };

static struct metrics_node describe_node(void *ctx, size_t host)
{
        (void)ctx;
        return host ? (struct metrics_node){ METRICS_LOST, 5 }
                    : (struct metrics_node){ METRICS_RUNNING, 7500000 };
}

struct setup {
        struct events events;
        struct rank_board *ranks;
        struct metrics *metrics;
        const char *reason; /* NULL = no failure */
};

static bool describe_failure(void *ctx, char *to, size_t size)
{
        const struct setup *s = ctx;

        if (s->reason)
                snprintf(to, size, "%s", s->reason);
        return s->reason;
}

static int set_up(void **state)
{
        struct setup *s = xcalloc(1, sizeof(*s));
        struct metrics_source source = { .run_id = "k3f9",
                                         .version = "1.0",
                                         .start_us = INT64_C(1700000000123456),
                                         .events = &s->events,
                                         .hosts = &hosts,
                                         .node = describe_node,
                                         .reason = describe_failure,
                                         .ctx = s };

        events_init(&s->events);
        source.ranks = s->ranks = rank_board_create(&s->events, &plan);
        s->metrics = metrics_create(&source);
        *state = s;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *s = *state;

        metrics_destroy(s->metrics);
        rank_board_destroy(s->ranks);
        free(s);
        return 0;
}

static void emit(struct setup *s, enum event_kind kind, int rank, int64_t value, int64_t count)
{
        events_emit(
                &s->events,
                (struct event){
                        .kind = kind, .node = -1, .rank = rank, .value = value, .count = count });
}

static char *text_of(const struct setup *s)
{
        struct buf b = BUF_INIT;

        metrics_text(s->metrics, &b);
        return buf_steal(&b);
}

static void expect_text(const struct setup *s, const char *want)
{
        CLEANUP(free_textp) char *text = text_of(s);

        if (!strstr(text, want))
                print_error("%s", text);
        assert_non_null(strstr(text, want));
}

static void expect_no_text(const struct setup *s, const char *other)
{
        CLEANUP(free_textp) char *text = text_of(s);

        assert_null(strstr(text, other));
}

#define TEST_SETUP(name) TEST_OF(set_up, tear_down, struct setup *s, name)

TEST_SETUP(before_the_plan_there_are_nodes)
{
        static const char want[] =
                "# HELP hnlaunch_info The run and the version of hnlaunch.\n"
                "# TYPE hnlaunch_info gauge\n"
                "hnlaunch_info{run=\"k3f9\",version=\"1.0\"} 1\n"
                "# HELP hnlaunch_start_time_seconds Start of hnlaunch, since 1970.\n"
                "# TYPE hnlaunch_start_time_seconds gauge\n"
                "hnlaunch_start_time_seconds 1700000000.123\n"
                "# HELP hnlaunch_attempt Number of the attempt, from 0.\n"
                "# TYPE hnlaunch_attempt gauge\n"
                "hnlaunch_attempt 0\n"
                "# HELP hnlaunch_nodes Nodes by state.\n"
                "# TYPE hnlaunch_nodes gauge\n"
                "hnlaunch_nodes{state=\"connecting\"} 0\n"
                "hnlaunch_nodes{state=\"ready\"} 0\n"
                "hnlaunch_nodes{state=\"running\"} 1\n"
                "hnlaunch_nodes{state=\"ended\"} 0\n"
                "hnlaunch_nodes{state=\"lost\"} 1\n"
                "# HELP hnlaunch_node_last_heard_timestamp_seconds When the newest byte came from "
                "a node that is not lost, since 1970.\n"
                "# TYPE hnlaunch_node_last_heard_timestamp_seconds gauge\n"
                "hnlaunch_node_last_heard_timestamp_seconds{host=\"gpu001\"} 1700000007.623\n"
                "# HELP hnlaunch_ranks Ranks of the attempt by state.\n";

        expect_text(s, want);
        rank_board_output(s->ranks, 0, MSG_STDOUT, 7);
        expect_no_text(s, "{rank=");
}

TEST_SETUP(ranks_have_steps_and_bytes)
{
        emit(s, EVENT_RUN_START, -1, 2, 2);
        emit(s, EVENT_RANK_STARTED, 0, 4711, 0);
        rank_board_step(s->ranks, 0, 120, 1000);
        rank_board_step(s->ranks, 1, 7, 0);
        rank_board_output(s->ranks, 1, MSG_STDERR, 40);
        rank_board_output(s->ranks, 1, MSG_STDERR, 2);
        rank_board_output(s->ranks, 2, MSG_STDERR, 2);
        expect_text(s,
                    "hnlaunch_ranks{state=\"waiting\"} 1\nhnlaunch_ranks{state=\"running\"} 1\n");
        expect_text(s, "\nhnlaunch_rank_step{rank=\"0\",host=\"gpu001\"} 120\n"
                       "hnlaunch_rank_step{rank=\"1\",host=\"a\\\"b\\\\c\\nd\"} 7\n# HELP");
        expect_text(s, "gauge\nhnlaunch_rank_steps_expected{rank=\"0\",host=\"gpu001\"} 1000\n# ");
        expect_text(s, "# TYPE hnlaunch_rank_output_bytes_total counter\n"
                       "hnlaunch_rank_output_bytes_total{rank=\"0\",host=\"gpu001\",stream="
                       "\"stdout\"} 0\n");
        expect_text(s, "\",stream=\"stderr\"} 42\n");
        expect_text(s, "gauge\nhnlaunch_rank_last_output_timestamp_seconds{rank=\"1\",");
}

TEST_SETUP(ranks_have_their_role)
{
        ranks[1].role = "infer";
        ranks[1].world = 1;
        ranks[1].program = 1;
        emit(s, EVENT_RUN_START, -1, 2, 2);
        rank_board_step(s->ranks, 0, 1, 0);
        rank_board_step(s->ranks, 1, 7, 0);
        expect_text(s, "hnlaunch_rank_step{rank=\"0\",host=\"gpu001\"} 1\n");
        expect_text(s, "d\",role=\"infer\",role_rank=\"0\"} 7\n");
        expect_text(s, ",role=\"infer\",role_rank=\"0\",stream=\"stdout\"} 0\n");
        /* Both run one program: they are replicas. */
        ranks[1].program = 0;
        expect_text(s, ",role=\"infer\",role_rank=\"0\",replica=\"1\"} 7\n");
        ranks[1].role = NULL;
        ranks[1].world = 0;
}

TEST_SETUP(ends_are_told_apart_and_begin_anew)
{
        emit(s, EVENT_RUN_START, -1, 2, 2);
        rank_board_step(s->ranks, 0, 120, 1000);
        rank_board_output(s->ranks, 1, MSG_STDOUT, 40);
        emit(s, EVENT_RANK_EXITED, 0, 3, 0);
        emit(s, EVENT_STOP, -1, 0, 0);
        emit(s, EVENT_RANK_EXITED, 1, -15, 0);
        expect_text(s, "{state=\"failed\"} 1\nhnlaunch_ranks{state=\"stopped\"} 1\n");
        emit(s, EVENT_RESTART, -1, 1, 0);
        expect_text(s, "hnlaunch_attempt 1\n");
        expect_text(s, "hnlaunch_ranks{state=\"waiting\"} 2\n");
        expect_text(s, "stream=\"stdout\"} 40\n");
        expect_no_text(s, "rank_step{");
        emit(s, EVENT_RANK_EXITED, 1, 0, 0);
        emit(s, EVENT_RANK_EXITED, 0, 9, 0);
        expect_text(s, "{state=\"succeeded\"} 1\nhnlaunch_ranks{state=\"failed\"} 1\n");
}

TEST_SETUP(stop_has_the_newest_reason)
{
        emit(s, EVENT_RUN_START, -1, 2, 2);
        emit(s, EVENT_RANK_EXITED, 0, 3, 0);
        s->reason = "rank 0 failed";
        expect_no_text(s, "stop_info");
        emit(s, EVENT_RANK_EXITED, 1, 3, 0);
        expect_text(s, "stop_info{reason=\"rank 0 failed\"} 1\n"); /* nothing was to be stopped */
        emit(s, EVENT_RESTART, -1, 1, 0);
        s->reason = NULL;
        expect_no_text(s, "stop_info");
        events_emit(&s->events,
                    (struct event){ .kind = EVENT_STOP, .node = -1, .rank = -1, .text = "why" });
        expect_text(s, "stop_info{reason=\"why\"} 1\n");
        s->reason = "rank 1 failed";
        expect_text(s, "stop_info{reason=\"rank 1 failed\"} 1\n");
}

TEST_SETUP(ranks_of_a_lost_node_have_failed)
{
        emit(s, EVENT_RUN_START, -1, 2, 2);
        emit(s, EVENT_RANK_STARTED, 0, 4711, 0);
        emit(s, EVENT_RANK_STARTED, 1, 4712, 0);
        events_emit(&s->events, (struct event){ .kind = EVENT_NODE_LOST, .node = 1, .rank = -1 });
        expect_text(s, "{state=\"running\"} 1\n");
        expect_text(s, "{state=\"failed\"} 1\n");
}
