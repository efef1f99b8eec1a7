/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "base/memory.h"
#include "head/top/top_state.h"
#include "lib/unit.h"
#include "wire/status_msg.h"
#include "wire/store_msg.h"

static char first_name[] = "gpu001", second_name[] = "a\"b\\c\nd\033";
static struct host two_hosts[] = { { .name = first_name }, { .name = second_name } };
static const struct hosts hosts = { .v = two_hosts, .n = 2 };
static int first_ranks[] = { 0, 1 }, second_ranks[] = { 2 };
static struct plan_node nodes[] = {
        { .host = 0, .node_rank = 0, .n_ranks = 2, .ranks = { first_ranks, 2 } },
        { .host = 1, .node_rank = 1, .n_ranks = 1, .ranks = { second_ranks, 1 } },
};
static struct plan_rank ranks[] = { { .rank = 0, .node = 0 },
                                    { .rank = 1, .node = 0 },
                                    { .rank = 2, .node = 1 } };
static const struct plan plan = { nodes, 2, ranks, 3, 2 };

struct setup {
        struct events events;
        struct rank_board *ranks;
        struct top_state *top;
        int64_t hang_ms, silent_ms;
        const char *hang_cause;
        json_t *line; /* that was read last */
};

static const char *tell_doing(void *ctx)
{
        (void)ctx;
        return "running";
}

static int64_t tell_hang_time(void *ctx)
{
        const struct setup *s = ctx;

        return s->hang_ms;
}

static const char *tell_hang_cause(void *ctx, int *ret_rank)
{
        const struct setup *s = ctx;

        *ret_rank = 1;
        return s->hang_cause;
}

static struct top_node describe_node(void *ctx, size_t host)
{
        const struct setup *s = ctx;

        return host ? (struct top_node){ .state = "lost" }
                    : (struct top_node){ "running", UINT64_C(64) << 30, s->silent_ms };
}

static bool role_waits;

static json_t *describe_waits(void *ctx UNUSED)
{
        return role_waits ? json_pack("[{s:s, s:s}]", "role", "b", "text", "role b waits for a")
                          : NULL;
}

static int set_up(void **state)
{
        struct setup *s = xcalloc(1, sizeof(*s));
        struct top_source source = { .run_id = "k3f9",
                                     .events = &s->events,
                                     .hosts = &hosts,
                                     .doing = tell_doing,
                                     .hang_ms = tell_hang_time,
                                     .hang_cause = tell_hang_cause,
                                     .waits = describe_waits,
                                     .node = describe_node,
                                     .ctx = s };

        events_init(&s->events);
        source.ranks = s->ranks = rank_board_create(&s->events, &plan);
        s->top = top_state_create(&source);
        *state = s;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *s = *state;

        json_decref(s->line);
        top_state_destroy(s->top);
        rank_board_destroy(s->ranks);
        free(s);
        return 0;
}

static void emit(struct setup *s, enum event_kind kind, int node, int rank, int64_t value)
{
        events_emit(&s->events,
                    (struct event){ .kind = kind, .node = node, .rank = rank, .value = value });
}

static void start_ranks(struct setup *s)
{
        emit(s, EVENT_RUN_START, -1, -1, 3);
        for (int r = 0; r < 3; r++)
                emit(s, EVENT_RANK_STARTED, ranks[r].node, r, 100);
}

/* Returns the line, which is valid until the next one. */
static const json_t *read_line(struct setup *s)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        top_state_json(s->top, 1000, &b);
        assert_int_equal(buf_data(&b)[buf_len(&b) - 1], '\n');
        assert_null(memchr(buf_data(&b), '\n', buf_len(&b) - 1));
        assert_null(memchr(buf_data(&b), '\033', buf_len(&b)));
        json_decref(s->line);
        s->line = json_loadb((const char *)buf_data(&b), buf_len(&b), 0, NULL);
        assert_non_null(s->line);
        return s->line;
}

static const json_t *host_of(const json_t *line, size_t host)
{
        return json_array_get(json_object_get(line, "hosts"), host);
}

static const json_t *rank_of(const json_t *line, size_t host, size_t rank)
{
        return json_array_get(json_object_get(host_of(line, host), "ranks"), rank);
}

static int64_t number(const json_t *j, const char *name)
{
        const json_t *v = json_object_get(j, name);

        return json_is_integer(v) ? json_integer_value(v) : -99;
}

static const char *word(const json_t *j, const char *name)
{
        const char *text = json_string_value(json_object_get(j, name));

        return text ? text : "";
}

static void take(struct setup *s, uint64_t interval_ms)
{
        struct sample m = { .interval_ms = interval_ms,
                            .cpu_permille = 123,
                            .memory_mib = 2048,
                            .in_kib = 7,
                            .out_kib = 9,
                            .n_ranks = 2,
                            .n_gpus = 1 };

        m.ranks = xcalloc(2, sizeof(*m.ranks));
        m.ranks[0] = (struct sample_rank){ .rank = 0,
                                           .state = 'S',
                                           .cpu_percent = 3,
                                           .memory_mib = 100,
                                           .quiet_ds = 21,
                                           .wait_op = STORE_BARRIER,
                                           .wait_ds = 50,
                                           .busy = 40 };
        m.ranks[1] = (struct sample_rank){
                .rank = 1, .state = 'R', .cpu_percent = 198, .busy = SAMPLE_USE_UNKNOWN
        };
        m.gpus = xcalloc(1, sizeof(*m.gpus));
        m.gpus[0] = (struct sample_gpu){ 97, 71000, 80, 66, 640 };
        top_state_take(s->top, 0, &m);
        assert_null(m.ranks);
        assert_null(m.gpus);
}

#define TEST_SETUP(name) TEST_OF(set_up, tear_down, struct setup *s, name)

TEST_SETUP(before_the_start_there_are_no_hosts)
{
        const json_t *j = read_line(s);

        assert_int_equal(json_array_size(json_object_get(j, "hosts")), 0);
        assert_string_equal(word(j, "run"), "k3f9");
        assert_int_equal(number(j, "world_size"), 0);
}

TEST_SETUP(steps_and_lags_are_told)
{
        const json_t *j;

        start_ranks(s);
        rank_board_step(s->ranks, 0, 20, 50);
        rank_board_step(s->ranks, 1, 17, 50);
        j = read_line(s);
        assert_int_equal(number(j, "step"), 17);
        assert_int_equal(number(j, "spread"), 3);
        assert_int_equal(number(j, "total"), 50);
        assert_int_equal(number(rank_of(j, 0, 1), "lag"), 3);
        assert_int_equal(number(rank_of(j, 0, 0), "lag"), 0);
        assert_int_equal(number(rank_of(j, 1, 0), "step"), -99);
        /* A rank that has ended is no longer the last. */
        emit(s, EVENT_RANK_EXITED, 0, 1, 0);
        j = read_line(s);
        assert_int_equal(number(j, "step"), 20);
        assert_int_equal(number(rank_of(j, 0, 1), "lag"), -99);
        assert_int_equal(number(rank_of(j, 0, 1), "step"), 17);
        assert_int_equal(number(j, "alive"), 2);
}

TEST_SETUP(a_sample_is_told)
{
        const json_t *r, *g;
        const json_t *j;

        start_ranks(s);
        take(s, 1000);
        take(s, 1000);
        j = read_line(s);
        assert_int_equal(number(rank_of(j, 0, 0), "busy_percent"), -99); /* two are too few */
        take(s, 1000);
        j = read_line(s);
        assert_true(json_real_value(json_object_get(host_of(j, 0), "cpu_percent")) > 12.2);
        assert_int_equal(number(host_of(j, 0), "memory_mib"), 2048);
        assert_int_equal(number(host_of(j, 0), "memory_total_mib"), 65536);
        assert_int_equal(number(host_of(j, 0), "in_kib"), 7);
        assert_int_equal(number(host_of(j, 0), "out_kib"), 9);
        assert_true(number(host_of(j, 0), "age_ms") >= 0);
        r = rank_of(j, 0, 0);
        assert_string_equal(word(r, "state"), "S");
        assert_string_equal(word(r, "wait"), "barrier");
        assert_true(number(r, "wait_ms") >= 5000);
        assert_true(number(r, "quiet_ms") >= 2000);
        assert_int_equal(number(r, "cpu_percent"), 3);
        assert_int_equal(number(r, "busy_percent"), 40);
        assert_string_equal(word(r, "busy_by"), "store");
        assert_int_equal(number(rank_of(j, 0, 1), "quiet_ms"), -99);
        assert_int_equal(number(rank_of(j, 0, 1), "busy_percent"), -99);
        assert_int_equal(number(rank_of(j, 0, 1), "cpu_percent"), 198);
        g = json_array_get(json_object_get(host_of(j, 0), "gpus"), 0);
        assert_int_equal(number(g, "use_percent"), 97);
        assert_int_equal(number(g, "memory_total_mib"), 81920);
        assert_int_equal(number(g, "watts"), 640);
        assert_int_equal(number(host_of(j, 1), "age_ms"), -99);
        top_state_forget(s->top);
        j = read_line(s);
        assert_int_equal(number(host_of(j, 0), "memory_mib"), -99);
        assert_string_equal(word(rank_of(j, 0, 0), "state"), "");
}

/* A number that the driver does not tell is left out. */
TEST_SETUP(unknown_figures_of_a_gpu_are_left_out)
{
        struct sample m = { .interval_ms = 1000, .n_gpus = 1 };
        const json_t *g;
        const json_t *j;

        start_ranks(s);
        m.gpus = xcalloc(1, sizeof(*m.gpus));
        m.gpus[0].use_percent = SAMPLE_USE_UNKNOWN;
        top_state_take(s->top, 0, &m);
        j = read_line(s);
        g = json_array_get(json_object_get(host_of(j, 0), "gpus"), 0);
        assert_int_equal(json_object_size(g), 1);
        assert_int_equal(number(g, "memory_mib"), 0);
}

/* Whatever an agent says, the line is JSON, and no sum overflows. */
TEST_SETUP(a_wild_sample_does_no_harm)
{
        struct sample m;
        const json_t *j;

        start_ranks(s);
        for (int letter = 1; letter < 256; letter++) {
                m = (struct sample){ .interval_ms = 1, .n_ranks = 2, .n_gpus = 1 };
                m.ranks = xcalloc(2, sizeof(*m.ranks));
                memset(m.ranks, 0xff, sizeof(*m.ranks));
                m.ranks[0].rank = 1;
                m.ranks[0].state = (uint8_t)letter;
                m.ranks[1].rank = 1; /* twice */
                m.ranks[1].state = (uint8_t)letter;
                m.gpus = xcalloc(1, sizeof(*m.gpus));
                memset(m.gpus, 0xff, sizeof(*m.gpus));
                top_state_take(s->top, 0, &m);
                j = read_line(s);
                assert_true(strlen(word(rank_of(j, 0, 1), "state")) <= 1);
        }
}

TEST_SETUP(a_first_sample_has_no_rates)
{
        const json_t *j;

        start_ranks(s);
        take(s, 0);
        j = read_line(s);
        assert_null(json_object_get(host_of(j, 0), "cpu_percent"));
        assert_int_equal(number(host_of(j, 0), "in_kib"), -99);
        assert_int_equal(number(rank_of(j, 0, 0), "cpu_percent"), -99);
        assert_int_equal(number(rank_of(j, 0, 0), "memory_mib"), 100);
}

TEST_SETUP(the_time_since_the_last_step_is_told)
{
        const json_t *j;

        start_ranks(s);
        rank_board_step(s->ranks, 0, 7, 50);
        j = read_line(s);
        assert_int_equal(number(j, "since_step_ms"), -99);
        emit(s, EVENT_RANK_PROGRESS, 0, 0, 7);
        j = read_line(s);
        assert_in_range(number(j, "since_step_ms"), 0, number(j, "us") / 1000);
        assert_int_equal(number(j, "step_ms"), 0);
        emit(s, EVENT_RANK_PROGRESS, 0, 0, 8);
        j = read_line(s);
        assert_true(number(j, "step_ms") >= 0);
}

TEST_SETUP(the_life_of_ranks_is_told)
{
        const json_t *j;

        emit(s, EVENT_RUN_START, -1, -1, 3);
        j = read_line(s);
        assert_string_equal(word(rank_of(j, 0, 0), "life"), "not started");
        start_ranks(s);
        take(s, 1000);
        emit(s, EVENT_RANK_EXITED, 0, 0, -9);
        emit(s, EVENT_NODE_LOST, 1, -1, 0);
        j = read_line(s);
        assert_string_equal(word(rank_of(j, 0, 0), "life"), "ended");
        assert_int_equal(number(rank_of(j, 0, 0), "exit"), -9);
        assert_string_equal(word(rank_of(j, 0, 0), "state"), "");
        assert_string_equal(word(rank_of(j, 0, 1), "life"), "alive");
        assert_string_equal(word(rank_of(j, 1, 0), "life"), "silent");
        assert_string_equal(word(host_of(j, 1), "state"), "lost");
        assert_string_equal(word(host_of(j, 1), "host"), second_name);
        assert_int_equal(number(host_of(j, 0), "memory_mib"), 2048);
        emit(s, EVENT_NODE_LOST, 0, -1, 0);
        j = read_line(s);
        assert_string_equal(word(rank_of(j, 0, 1), "life"), "silent");
        assert_int_equal(number(host_of(j, 0), "memory_mib"), -99);
        emit(s, EVENT_RESTART, -1, -1, 1);
        j = read_line(s);
        assert_int_equal(number(j, "attempt"), 1);
        assert_string_equal(word(rank_of(j, 0, 0), "life"), "not started");
        assert_int_equal(number(host_of(j, 0), "memory_mib"), -99);
}

TEST_SETUP(silence_and_a_hang_are_told)
{
        const json_t *j;

        start_ranks(s);
        j = read_line(s);
        assert_int_equal(number(j, "stalled_ms"), -99);
        assert_int_equal(number(host_of(j, 0), "silent_ms"), -99);
        assert_null(json_object_get(j, "hang"));
        s->hang_cause = "rank 1 on gpu001 sleeps";
        s->hang_ms = 61000;
        s->silent_ms = 4000;
        j = read_line(s);
        assert_int_equal(number(j, "stalled_ms"), 61000);
        assert_string_equal(word(json_object_get(j, "hang"), "text"), "rank 1 on gpu001 sleeps");
        assert_int_equal(number(json_object_get(j, "hang"), "rank"), 1);
        assert_int_equal(number(host_of(j, 0), "silent_ms"), 4000);
}

TEST_SETUP(roles_that_wait_are_told)
{
        const json_t *line;

        start_ranks(s);
        line = read_line(s);
        assert_null(json_object_get(line, "waits"));
        role_waits = true;
        line = read_line(s);
        assert_string_equal(json_string_value(json_object_get(
                                    json_array_get(json_object_get(line, "waits"), 0), "text")),
                            "role b waits for a");
        role_waits = false;
}
