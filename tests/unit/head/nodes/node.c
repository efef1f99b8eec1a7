/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every cell of the node's table: each event in each state, through the real functions of node.c.
 *
 * The agent is the other end of a socketpair, which a transport of this test hands out. A node is
 * brought into the state by the way that a job takes.
 */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/nodes/node.h"
#include "lib/unit.h"

#define NEVER (-1) /* cannot come: what would tell of it does not exist yet */

/* What a node in this state becomes by this event. */
static const int expected[NODE_STATES][NODE_EVENTS] = {
        /*                    CONNECT          OPENED         HELLO            LAUNCH DONE AGAIN
           BROKEN */
        [NODE_NEW] = { NODE_CONNECTING, NEVER, NEVER, NODE_NEW, NEVER, NODE_NEW, NODE_FAILED },
        [NODE_CONNECTING] = { NODE_CONNECTING, NODE_GREETING, NEVER, NODE_CONNECTING, NEVER,
                              NODE_CONNECTING, NODE_FAILED },
        [NODE_GREETING] = { NODE_GREETING, NODE_GREETING, NODE_READY, NODE_GREETING,
                            NODE_FAILED /* a frame before HELLO is no greeting */, NODE_GREETING,
                            NODE_FAILED },
        [NODE_READY] = { NODE_READY, NODE_READY, NODE_READY, NODE_RUNNING, NODE_READY, NODE_READY,
                         NODE_FAILED },
        [NODE_RUNNING] = { NODE_RUNNING, NODE_RUNNING, NODE_RUNNING, NODE_RUNNING, NODE_GONE,
                           NODE_RUNNING, NODE_FAILED },
        [NODE_GONE] = { NODE_GONE, NODE_GONE, NODE_GONE, NODE_GONE, NODE_GONE, NODE_READY,
                        NODE_GONE },
        [NODE_FAILED] = { NODE_FAILED, NODE_FAILED, NODE_FAILED, NODE_FAILED, NODE_FAILED,
                          NODE_FAILED, NODE_FAILED },
};

static const char *const state_names[] = { "NEW",     "CONNECTING", "GREETING", "READY",
                                           "RUNNING", "GONE",       "FAILED" };
static const char *const event_names[] = { "CONNECT", "OPENED", "HELLO", "LAUNCH",
                                           "DONE",    "AGAIN",  "BROKEN" };

/* --- a transport whose links are opened by the test ------------------------------------------- */

struct stage {
        struct transport transport; /* first */
        struct link link;
        const struct link_callbacks *cb;
        void *cb_ctx;
        size_t opened, closed; /* links */
        int agent;             /* our end of the stream */
        bool greeted;          /* MSG_MAGIC was sent there */
        uv_loop_t loop;
        struct node node;
        size_t changes, messages, left;
        enum node_state was;
};

static struct link *open_link(struct transport *t, const struct link_target *to UNUSED,
                              const struct link_callbacks *cb, void *ctx, struct error *err UNUSED)
{
        struct stage *s = (struct stage *)t;

        s->opened++;
        s->cb = cb;
        s->cb_ctx = ctx;
        s->link.transport = t;
        return &s->link;
}

static void close_link(struct link *l)
{
        ((struct stage *)l->transport)->closed++;
}

static void destroy(struct transport *t UNUSED)
{
}

static const struct transport_ops transport_ops = { .open = open_link,
                                                    .close = close_link,
                                                    .destroy = destroy };

static void changed(void *ctx, struct node *n UNUSED, enum node_state was)
{
        struct stage *s = ctx;

        s->changes++;
        s->was = was;
}

static void uploading(void *ctx UNUSED, struct node *n UNUSED)
{
}
static void phase(void *ctx UNUSED, struct node *n UNUSED, enum link_phase p UNUSED)
{
}
static void noise(void *ctx UNUSED, struct node *n UNUSED, const char *t UNUSED, size_t len UNUSED)
{
}

static int message(void *ctx, struct node *n UNUSED, const struct frame *f UNUSED,
                   struct error *err UNUSED)
{
        struct stage *s = ctx;

        s->messages++;
        return 0;
}

static void left(void *ctx, struct node *n UNUSED)
{
        struct stage *s = ctx;

        s->left++;
}

static const struct node_ops node_ops = { .changed = changed,
                                          .uploading = uploading,
                                          .phase = phase,
                                          .message = message,
                                          .noise = noise,
                                          .left = left };
static const struct host host = { .name = (char *)"node001" };
static const struct agent_binaries agent_binaries = { .v = { { .arch = "x86_64" } }, .n = 1 };

static void stage_begin(struct stage *s)
{
        *s = (struct stage){ .transport.ops = &transport_ops, .agent = -1 };
        uv_loop_init(&s->loop);
        node_init(&s->node, &s->loop, 0, &host, &agent_binaries, &node_ops, s);
}

static void turn(struct stage *s)
{
        for (int i = 0; i < 5; i++)
                uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void stage_end(struct stage *s)
{
        node_close(&s->node);
        uv_run(&s->loop, UV_RUN_DEFAULT);
        assert_true(node_closed(&s->node));
        assert_int_equal(s->opened, s->closed);
        node_finish(&s->node);
        fd_close(s->agent);
        assert_int_equal(uv_loop_close(&s->loop), 0);
}

/* --- events: each by what causes it in a job -------------------------------------------------- */

static void say(struct stage *s, const struct buf *b)
{
        assert_int_equal(write(s->agent, buf_data(b), buf_len(b)), buf_len(b));
}

static void open_stream(struct stage *s)
{
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
                         0);
        if (s->agent < 0)
                s->agent = pair[1];
        else
                close(pair[1]);
        s->cb->opened(s->cb_ctx, pair[0]);
}

static void say_hello(struct stage *s)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct hello h = { .version = MSG_VERSION };

        if (!s->greeted)
                buf_appends(&b, MSG_MAGIC);
        s->greeted = true;
        hello_encode(&b, &h);
        say(s, &b);
}

static void say_gone(struct stage *s)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        if (!s->greeted)
                buf_appends(&b, MSG_MAGIC);
        s->greeted = true;
        empty_encode(&b, MSG_GONE);
        say(s, &b);
}

static void cause(struct stage *s, enum node_event e)
{
        switch (e) {
        case NODE_EV_CONNECT:
                node_connect(&s->node, &s->transport, NULL, 60000);
                break;
        case NODE_EV_OPENED:
                open_stream(s);
                break;
        case NODE_EV_HELLO:
                say_hello(s);
                break;
        case NODE_EV_LAUNCH:
                node_launched(&s->node);
                break;
        case NODE_EV_DONE:
                say_gone(s);
                break;
        case NODE_EV_AGAIN:
                node_again(&s->node);
                break;
        default:
                node_break(&s->node, LINK_TIMED_OUT, "broken by the test");
        }
        turn(s);
}

/* The way of a job into a state. */
static void bring_to(struct stage *s, enum node_state to)
{
        static const enum node_event way[] = { NODE_EV_CONNECT, NODE_EV_OPENED, NODE_EV_HELLO,
                                               NODE_EV_LAUNCH, NODE_EV_DONE };

        if (to == NODE_FAILED) {
                bring_to(s, NODE_RUNNING);
                cause(s, NODE_EV_BROKEN);
        } else {
                for (size_t i = 0; i < (size_t)to; i++)
                        cause(s, way[i]);
        }
        assert_int_equal(s->node.state, to);
}

static void stage_at(struct stage *s, enum node_state state)
{
        stage_begin(s);
        bring_to(s, state);
}

/* --- the tests -------------------------------------------------------------------------------- */

static void check(enum node_state from, enum node_event e)
{
        int to = expected[from][e];
        CLEANUP(stage_end) struct stage s;

        stage_at(&s, from);
        s.changes = 0;
        cause(&s, e);
        if (s.node.state != (enum node_state)to)
                fail_msg("%s in %s: became %s, should be %s", event_names[e], state_names[from],
                         state_names[s.node.state], state_names[to]);
        assert_int_equal(s.changes, (enum node_state)to != from);
        if (s.changes)
                assert_int_equal(s.was, from);
}

TEST(every_event_in_every_state)
{
        assert_int_equal(ARRAY_SIZE(state_names), NODE_STATES);
        assert_int_equal(ARRAY_SIZE(event_names), NODE_EVENTS);
        for (int st = 0; st < NODE_STATES; st++)
                for (int e = 0; e < NODE_EVENTS; e++)
                        if (expected[st][e] != NEVER)
                                check((enum node_state)st, (enum node_event)e);
}

/* Also the cells that no caller can reach: an event there is ignored. */
TEST(the_whole_table)
{
        for (int st = 0; st < NODE_STATES; st++)
                for (int e = 0; e < NODE_EVENTS; e++) {
                        int to = expected[st][e];
                        bool early = st == NODE_GREETING && e == NODE_EV_DONE;

                        assert_int_equal(node_next_state((enum node_state)st, (enum node_event)e),
                                         to == NEVER || early ? st : to);
                }
}

/* The states from which a stream that ends makes a node FAILED, and how. */
TEST(a_stream_that_ends_fails_the_node)
{
        static const enum node_state states[] = { NODE_READY, NODE_RUNNING };

        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                CLEANUP(stage_end) struct stage s;

                stage_at(&s, states[i]);
                s.agent = fd_close(s.agent);
                turn(&s);
                assert_int_equal(s.node.state, NODE_FAILED);
                assert_int_equal(s.was, states[i]);
                assert_string_equal(s.node.failure->fact, "connection lost (end of stream)");
        }
}

TEST(no_other_attempt_with_an_agent_that_left)
{
        CLEANUP(stage_end) struct stage s;

        stage_at(&s, NODE_GONE);
        s.agent = fd_close(s.agent);
        turn(&s);
        assert_int_equal(s.node.state, NODE_GONE);
        node_again(&s.node);
        assert_int_equal(s.node.state, NODE_FAILED);
}

/* It may carry others, who are lost with it, and cannot have another attempt. */
TEST(a_gone_node_that_is_given_up_has_left)
{
        CLEANUP(stage_end) struct stage s;

        stage_at(&s, NODE_GONE);
        assert_false(s.node.ended);
        for (int i = 0; i < 2; i++) {
                node_break(&s.node, LINK_TIMED_OUT, "no heartbeat for %d s", 3);
                assert_int_equal(s.node.state, NODE_GONE);
                assert_true(s.node.ended);
                assert_int_equal(s.left, 1);
                assert_string_equal(s.node.failure->fact, "no heartbeat for 3 s");
        }
        node_again(&s.node);
        assert_int_equal(s.node.state, NODE_FAILED);
}

/* Late news of the first link must not reach a node that was told to connect twice. */
TEST(a_node_opens_one_link)
{
        CLEANUP(stage_end) struct stage s;

        stage_at(&s, NODE_CONNECTING);
        cause(&s, NODE_EV_CONNECT);
        assert_int_equal(s.opened, 1);
}

/* What the socket takes at once and what it does not become one stream, in order. */
TEST(long_messages_arrive_whole)
{
        enum { LONG = 3 << 20, TIMES = 3, TOTAL = TIMES * (2 + LONG) };
        unsigned char *p = malloc(LONG), *got = malloc(TOTAL);
        CLEANUP(stage_end) struct stage s;
        size_t n = 0;

        for (size_t i = 0; i < LONG; i++)
                p[i] = (unsigned char)(i * 2654435761u >> 24);
        stage_at(&s, NODE_RUNNING);
        for (int i = 0; i < TIMES; i++) {
                buf_appends(&s.node.out, "<>");
                node_out_long(&s.node, p, LONG);
        }
        node_flush(&s.node);
        while (n < TOTAL) {
                ssize_t r = read(s.agent, got + n, TOTAL - n);

                n += r > 0 ? (size_t)r : 0;
                turn(&s);
        }
        for (int i = 0; i < TIMES; i++) {
                assert_memory_equal(got + i * (2 + LONG), "<>", 2);
                assert_memory_equal(got + i * (2 + LONG) + 2, p, LONG);
        }
        free(p);
        free(got);
}

/* It is told by the loop, not from inside. */
TEST(a_long_message_to_an_agent_that_left_fails_the_node)
{
        static const char p[100000];
        CLEANUP(stage_end) struct stage s;

        stage_at(&s, NODE_RUNNING);
        s.agent = fd_close(s.agent);
        node_out_long(&s.node, p, sizeof(p));
        node_flush(&s.node);
        assert_int_equal(s.node.state, NODE_RUNNING);
        turn(&s);
        assert_int_equal(s.node.state, NODE_FAILED);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN); /* as in hnlaunch */
        return unit_run(NULL, NULL);
}
