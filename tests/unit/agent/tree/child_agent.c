/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tree/child_agent.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strv.h"
#include "lib/unit.h"

/* What a socket pair holds without a reader, and more than is read at once. */
#define LAST_WORDS 100000

enum { LONGER_THAN_A_DRAIN_MS = 500 };

static struct seen {
        size_t said;
        char first[16]; /* of what it said */
        bool ended;
        int status;
} seen;

static void on_received(void *ctx UNUSED, const void *data, size_t len)
{
        if (!seen.said)
                memcpy(seen.first, data, MIN(len, sizeof(seen.first) - 1));
        seen.said += len;
}

static void on_written(void *ctx UNUSED, uint32_t bytes UNUSED)
{
}

static void on_noise(void *ctx UNUSED, const void *text UNUSED, size_t len UNUSED)
{
}

static void on_ended(void *ctx UNUSED, int status)
{
        seen.ended = true;
        seen.status = status;
}

static const struct child_agent_ops ops = {
        .received = on_received,
        .written = on_written,
        .noise = on_noise,
        .ended = on_ended,
};

static uv_loop_t loop;

static struct child_agent *open_child_agent(const char *script)
{
        struct child_agent_order o = { .number = 1, .argv = STRV_INIT };
        struct child_agent *c;
        struct error err;

        seen = (struct seen){ 0 };
        assert_int_equal(uv_loop_init(&loop), 0);
        strv_push(&o.argv, "sh");
        strv_push(&o.argv, "-c");
        strv_push(&o.argv, script);
        c = child_agent_open(&loop, &o, NULL, &ops, NULL, &err);
        if (!c)
                fail_msg("%s", err.text);
        strv_finish(&o.argv);
        return c;
}

static void reap(struct child_agent *c)
{
        pid_t pid = child_agent_pid(c);
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        child_agent_reaped(c, status);
}

static void stop(uv_timer_t *t)
{
        uv_stop(t->loop);
}

static void run_for(uint64_t ms)
{
        uv_timer_t t;

        uv_timer_init(&loop, &t);
        uv_timer_start(&t, stop, ms, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&t, NULL);
        uv_run(&loop, UV_RUN_NOWAIT);
}

static void run_to_the_end(void)
{
        while (!seen.ended)
                uv_run(&loop, UV_RUN_ONCE);
}

/* As on a machine where others are scheduled first: the time for its last words is over. */
static void be_late(void)
{
        usleep(LONGER_THAN_A_DRAIN_MS * 1000);
}

static void close_child_agent(struct child_agent *c)
{
        child_agent_destroy(c);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(all_that_it_said_comes_before_its_end)
{
        struct child_agent *c = open_child_agent("head -c 100000 /dev/zero; exit 7");

        reap(c);
        run_to_the_end();
        assert_int_equal(seen.said, LAST_WORDS);
        assert_int_equal(WEXITSTATUS(seen.status), 7);
        close_child_agent(c);
}

/* The head reads slowly, for longer than a dead child's streams are waited for. */
TEST(last_words_wait_for_who_is_paused)
{
        struct child_agent *c = open_child_agent("head -c 100000 /dev/zero");

        child_agent_pause(c, true);
        reap(c);
        run_for(LONGER_THAN_A_DRAIN_MS);
        assert_int_equal(seen.said, 0);
        assert_false(seen.ended);
        child_agent_pause(c, false);
        be_late();
        run_to_the_end();
        assert_int_equal(seen.said, LAST_WORDS);
        close_child_agent(c);
}

TEST(who_is_paused_can_be_ended)
{
        struct child_agent *c = open_child_agent("echo gone");

        child_agent_pause(c, true);
        reap(c);
        run_for(LONGER_THAN_A_DRAIN_MS);
        child_agent_end(c);
        run_to_the_end();
        assert_int_equal(seen.said, 0);
        close_child_agent(c);
}

/* A process that outlives it has its streams, and says nothing more. */
TEST(who_holds_its_streams_does_not_hold_its_end)
{
        struct child_agent *c = open_child_agent("sleep 20 & echo $!; exit 0");

        child_agent_pause(c, true);
        reap(c);
        child_agent_pause(c, false);
        be_late();
        run_to_the_end();
        assert_true(atoi(seen.first) > 0);
        assert_int_equal(kill((pid_t)atoi(seen.first), SIGKILL), 0);
        close_child_agent(c);
}
