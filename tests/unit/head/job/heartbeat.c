/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a lost node are dead when it is given up, or a restart knows how long to wait. Ctrl-Z
 * begins no beats. */
#include "head/job/heartbeat.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "lib/unit.h"

enum { HEARD_MS = 5000, SUSPENDED_MS = 300 };

struct world {
        struct options options;
        struct host host;
        struct node node;
        uv_loop_t loop;
        struct cluster cluster;
        struct attempt attempt;
        struct heartbeat *heartbeat;
};

static void make_world(struct world *w, int64_t timeout_ms, bool local)
{
        *w = (struct world){ .options.node_timeout_ms = timeout_ms, .host.local = local };
        w->node.host = &w->host;
        w->node.heard_ns = HEARD_MS * INT64_C(1000000);
        w->cluster.options = &w->options;
        w->cluster.nodes = &w->node;
        w->cluster.n_nodes = 1;
        w->cluster.loop = &w->loop;
        w->attempt.outcome = (struct outcome)OUTCOME_INIT;
        uv_loop_init(&w->loop);
        w->heartbeat = heartbeat_create(&w->cluster, &w->attempt, NULL, NULL);
}

static void drop_world(struct world *w)
{
        heartbeat_close(w->heartbeat);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        uv_loop_close(&w->loop);
        heartbeat_free(w->heartbeat);
}

/* Milliseconds after the last word of the node until none of its ranks lives. */
static int64_t dead_after_ms(const struct world *w)
{
        return heartbeat_dead_ns(w->heartbeat, &w->node, true) / 1000000 - HEARD_MS;
}

TEST(ranks_are_dead_when_the_node_is_given_up)
{
        static const int64_t timeouts[] = { 24000, 30000, 60000, 600000 };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                make_world(&w, timeouts[i], false);
                assert_int_equal(heartbeat_interval_ms(w.heartbeat), 500);
                assert_true(dead_after_ms(&w) <= timeouts[i] - 500);
                drop_world(&w);
        }
        make_world(&w, 30000, false);
        assert_int_equal(heartbeat_agent_ms(w.heartbeat, &w.node), 23000);
        drop_world(&w);
}

TEST(a_node_is_pinged_often_enough_while_files_are_pushed)
{
        static const int64_t timeouts[] = { 100, 1000, 30000, 600000 };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                make_world(&w, timeouts[i], false);
                heartbeat_start(w.heartbeat, true);
                assert_true(heartbeat_interval_ms(w.heartbeat) <= 1500);
                assert_true(heartbeat_agent_ms(w.heartbeat, &w.node) >
                            10 * heartbeat_interval_ms(w.heartbeat));
                drop_world(&w);
        }
}

TEST(a_short_timeout_leaves_the_agent_two_thirds)
{
        static const int64_t timeouts[] = { 100, 1000, 3000, 6000, 12000 };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
                make_world(&w, timeouts[i], false);
                assert_int_equal(heartbeat_agent_ms(w.heartbeat, &w.node), timeouts[i] * 2 / 3);
                assert_true(dead_after_ms(&w) > timeouts[i]);
                drop_world(&w);
        }
}

TEST(this_machine_has_a_minute)
{
        static const int64_t want[][2] = {
                { 100, 2000 }, { 3000, 60000 }, { 30000, 60000 }, { 90000, 90000 }
        };
        struct world w;

        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                make_world(&w, want[i][0], true);
                assert_int_equal(heartbeat_silence_ms(w.heartbeat, &w.node), want[i][1]);
                assert_int_equal(heartbeat_agent_ms(w.heartbeat, &w.node), want[i][1]);
                drop_world(&w);
        }
}

static void on_awake(uv_timer_t *t)
{
        *(bool *)t->data = true;
}

/* Suspends the process until SIGCONT, then ends it: with 1 if there are beats. */
static void suspend_and_end(struct world *w, bool start, bool stop)
{
        uv_timer_t awake; /* behind the timer of the suspend */
        bool over = false;

        if (start)
                heartbeat_start(w->heartbeat, false);
        if (stop)
                heartbeat_stop(w->heartbeat);
        heartbeat_suspend(w->heartbeat);
        uv_timer_init(&w->loop, &awake);
        awake.data = &over;
        uv_timer_start(&awake, on_awake, SUSPENDED_MS, 0);
        while (!over)
                uv_run(&w->loop, UV_RUN_ONCE);
        heartbeat_keep_loop(w->heartbeat);
        _exit(uv_loop_alive(&w->loop));
}

/* Whether the heart of another process beats after a suspend. */
static bool beats_again(bool start, bool stop)
{
        struct world w;
        int status;
        pid_t pid;

        make_world(&w, 30000, false);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid)
                suspend_and_end(&w, start, stop);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        drop_world(&w);
        return WEXITSTATUS(status);
}

TEST(a_pause_explains_nodes_that_have_left)
{
        struct link_failure ended = { .cause = LINK_ENDED };
        struct cause c = { 0 };
        struct world w;

        make_world(&w, 3000, false); /* an agent waits 2 s */
        w.node.failure = &ended;
        w.node.state = NODE_FAILED;
        heartbeat_start(w.heartbeat, false);
        w.node.silent_ns = w.node.heard_ns;
        assert_false(heartbeat_explains(w.heartbeat, &w.node, &c));
        usleep(2100000);
        assert_true(heartbeat_explains(w.heartbeat, &w.node, &c)); /* before the beat */
        assert_int_equal(c.kind, CAUSE_PAUSE);
        assert_int_equal(c.node, -1);
        heartbeat_keep_loop(w.heartbeat);
        uv_run(&w.loop, UV_RUN_ONCE);
        assert_true(heartbeat_explains(w.heartbeat, &w.node, &c)); /* after it */
        assert_int_equal(w.node.silent_ns, w.node.heard_ns);       /* the pause was no silence */
        usleep(600000);                                            /* a shorter pause */
        uv_run(&w.loop, UV_RUN_ONCE);
        assert_true(heartbeat_explains(w.heartbeat, &w.node, &c));
        ended.cause = LINK_TIMED_OUT;
        assert_false(heartbeat_explains(w.heartbeat, &w.node, &c));
        ended.cause = LINK_ENDED;
        heartbeat_stop(w.heartbeat);
        heartbeat_start(w.heartbeat, false); /* the next attempt */
        assert_false(heartbeat_explains(w.heartbeat, &w.node, &c));
        w.node.failure = NULL;
        drop_world(&w);
}

TEST(a_suspend_starts_no_heartbeat)
{
        assert_false(beats_again(false, false));
        assert_true(beats_again(true, false));
        assert_false(beats_again(true, true));
}
