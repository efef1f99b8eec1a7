/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tree/tunnel_filter.h"

#include "base/buf.h"
#include "lib/unit.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/tree_msg.h"

enum { NODES = 2 };

/* One way to the head for all, as an agent has it: what came there is a line of words. */
static struct {
        struct relay *relay;
        struct tunnel_filter *taps[NODES];
        struct buf head, down[NODES];
        uint32_t tag; /* of the relay's last request */
} world;

static int number_of(void *ctx)
{
        return (int)((struct tunnel_filter **)ctx - world.taps);
}

static void relay_up(void *ctx UNUSED, const void *body, size_t len)
{
        struct store_head h = store_body_head(body, len);

        if (store_op_has_answer(h.op))
                world.tag = h.tag;
        buf_printf(&world.head, "%s ", store_op_name(h.op));
}

/* What is no frame is shown as it is. */
static void up(void *ctx, const void *data, size_t len)
{
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct error err;
        struct frame f;
        int n = 0;

        buf_append(&in, data, len);
        for (; frame_peek(&in, &f, &err) > 0; n++) {
                buf_printf(&world.head, "%d:%u ", number_of(ctx), f.type);
                frame_consume(&in, &f);
        }
        if (!n)
                buf_append(&world.head, data, len);
}

static void down(void *ctx, const void *data, size_t len, bool inserted UNUSED)
{
        buf_append(&world.down[number_of(ctx)], data, len);
}

static void pong(void *ctx, const struct ping *p)
{
        buf_printf(&world.head, "%d:pong%d ", number_of(ctx), (int)p->agent_ns);
}

static void ping_request(void *ctx)
{
        buf_printf(&world.head, "%d:ping_request ", number_of(ctx));
}

static void news(void *ctx)
{
        buf_printf(&world.head, "%d:news ", number_of(ctx));
}

static const struct tunnel_filter_ops ops = {
        .up = up, .down = down, .pong = pong, .ping_request = ping_request, .news = news
};

static int set_up(void **state UNUSED)
{
        world.relay = relay_create((struct relay_ops){ .up = relay_up }, NULL);
        assert_non_null(world.relay);
        for (int i = 0; i < NODES; i++) {
                world.taps[i] = tunnel_filter_create(world.relay, &ops, &world.taps[i]);
                assert_non_null(world.taps[i]);
        }
        return 0;
}

static int tear_down(void **state UNUSED)
{
        for (int i = 0; i < NODES; i++) {
                tunnel_filter_destroy(world.taps[i]);
                buf_finish(&world.down[i]);
        }
        relay_destroy(world.relay);
        buf_finish(&world.head);
        return 0;
}

/* What the head has heard since the last time. */
static void heard(const char *want)
{
        buf_append(&world.head, "", 1);
        assert_string_equal(buf_data(&world.head), want);
        buf_clear(&world.head);
}

static void say(int node, const struct buf *b)
{
        assert_int_equal(tunnel_filter_up(world.taps[node], buf_data(b), buf_len(b)), 0);
}

static void say_text(int node, const char *text)
{
        assert_int_equal(tunnel_filter_up(world.taps[node], text, strlen(text)), 0);
}

static void begin(void)
{
        for (int i = 0; i < NODES; i++)
                say_text(i, MSG_MAGIC);
        buf_clear(&world.head);
}

static void put_request(struct buf *b, const struct store_request *req)
{
        size_t mark = frame_begin(b, MSG_STORE);

        store_request_encode(b, req);
        frame_end(b, mark);
}

static void put(struct buf *b, uint8_t op, uint32_t client, uint32_t tag)
{
        put_request(b, &(struct store_request){ .client = client,
                                                .op = op,
                                                .tag = tag,
                                                .key = bytes_of("k"),
                                                .value = bytes_of("v"),
                                                .number = 1 });
}

static void ask(int node, uint8_t op, uint32_t client, uint32_t tag)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        put(&b, op, client, tag);
        say(node, &b);
}

static void deliver(int64_t number)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;

        store_reply_encode(&b, &(struct store_reply){ .tag = world.tag, .number = number });
        assert_int_equal(relay_deliver(world.relay, buf_data(&b), buf_len(&b), &err), 0);
}

/* The frames that a node was sent: type, and tag and number of an answer. */
static void was_sent(int node, const char *want)
{
        CLEANUP(buf_finish) struct buf line = BUF_INIT;
        struct store_reply reply;
        struct error err;
        struct frame f;

        while (frame_peek(&world.down[node], &f, &err) > 0) {
                if (f.type == MSG_STORE) {
                        assert_int_equal(store_reply_decode(&reply, f.body, f.len, &err), 0);
                        buf_printf(&line, "%u=%d ", reply.tag, (int)reply.number);
                        store_reply_finish(&reply);
                } else {
                        buf_printf(&line, ":%u ", f.type);
                }
                frame_consume(&world.down[node], &f);
        }
        buf_append(&line, "", 1);
        assert_string_equal(buf_data(&line), want);
}

TEST_WITH(set_up, tear_down, noise_passes_until_the_magic_line)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        say_text(0, "Welcome\nHNLAUNC");
        heard("Welcome\nHNLAUNC");
        buf_appends(&b, "HNLAUNCH-AGENT\n");
        put(&b, STORE_GET, STORE_NODE, 1);
        for (size_t i = 0; i < buf_len(&b); i++)
                assert_int_equal(tunnel_filter_up(world.taps[0], buf_data(&b) + i, 1), 0);
        heard("HNLAUNCH-AGENT\n");
        relay_turn(world.relay);
        heard("GET ");
}

TEST_WITH(set_up, tear_down, what_two_nodes_ask_is_asked_once)
{
        begin();
        ask(0, STORE_ADD, STORE_NODE, 7);
        ask(1, STORE_ADD, STORE_NODE, 9);
        heard("");
        relay_turn(world.relay);
        heard("ADD ");
        deliver(2);
        was_sent(0, "7=1 ");
        was_sent(1, "9=2 ");
}

TEST_WITH(set_up, tear_down, what_passes_does_not_overtake)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        begin();
        put(&b, STORE_SET, STORE_NODE, 1);
        put(&b, STORE_BARRIER, 5, 2);
        empty_encode(&b, MSG_GONE);
        say(0, &b);
        heard("SET 0:64 0:37 ");
}

TEST_WITH(set_up, tear_down, what_is_not_for_relays_passes)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t mark;

        begin();
        ask(0, STORE_HELLO, 3, 1);
        ask(0, STORE_HELLO, STORE_NODE, 1);
        mark = frame_begin(&b, MSG_STORE);
        frame_end(&b, mark);
        mark = frame_begin(&b, MSG_STORE);
        store_request_encode(&b, &(struct store_request){ .op = STORE_GET, .tag = 1 });
        buf_appends(&b, "more");
        frame_end(&b, mark);
        say(0, &b);
        heard("0:64 0:64 0:64 0:64 ");
}

TEST_WITH(set_up, tear_down, an_answer_waits_for_the_end_of_a_frame)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        begin();
        ask(0, STORE_ADD, STORE_NODE, 1);
        relay_turn(world.relay);
        empty_encode(&b, MSG_BYE);
        empty_encode(&b, MSG_BYE);
        for (size_t i = 0; i < buf_len(&b); i++) {
                tunnel_filter_down(world.taps[0], buf_data(&b) + i, 1);
                if (i == 1)
                        deliver(1);
        }
        was_sent(0, ":7 1=1 :7 ");
        ask(0, STORE_ADD, STORE_NODE, 1);
        relay_turn(world.relay);
        tunnel_filter_down(world.taps[0], buf_data(&b), 3);
        deliver(2);
        tunnel_filter_down(world.taps[0], buf_data(&b) + 3, buf_len(&b) - 3);
        was_sent(0, ":7 1=2 :7 ");
}

static void ping(int node)
{
        tunnel_filter_ping(world.taps[node], &(struct ping){ .head_ns = 1 });
}

TEST_WITH(set_up, tear_down, a_ping_goes_between_frames)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        ping(0);
        was_sent(0, "");
        begin();
        ping(0);
        was_sent(0, ":6 ");
        empty_encode(&b, MSG_BYE);
        tunnel_filter_down(world.taps[0], buf_data(&b), 3);
        ping(0);
        ping(0);
        was_sent(0, "");
        tunnel_filter_down(world.taps[0], buf_data(&b) + 3, buf_len(&b) - 3);
        was_sent(0, ":7 :6 ");
        ping(0);
        was_sent(0, ":6 ");
        was_sent(1, "");
}

TEST_WITH(set_up, tear_down, a_pong_ends_here)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t mark;

        begin();
        empty_encode(&b, MSG_GONE);
        ping_encode(&b, MSG_PONG, &(struct ping){ .head_ns = 1, .agent_ns = 5 });
        empty_encode(&b, MSG_GONE);
        mark = frame_begin(&b, MSG_PONG); /* malformed: for the head to judge */
        frame_end(&b, mark);
        for (size_t i = 0; i < buf_len(&b); i++)
                assert_int_equal(tunnel_filter_up(world.taps[0], buf_data(&b) + i, 1), 0);
        heard("0:37 0:pong5 0:37 0:38 ");
        say(1, &b);
        heard("1:37 1:pong5 1:37 1:38 ");
}

TEST_WITH(set_up, tear_down, a_ping_request_ends_here)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        begin();
        empty_encode(&b, MSG_GONE);
        empty_encode(&b, MSG_PING_REQUEST);
        empty_encode(&b, MSG_GONE);
        say(0, &b);
        heard("0:37 0:ping_request 0:37 ");
}

static void put_exited(struct buf *b, uint32_t status, uint8_t stopped)
{
        exited_encode(b, &(struct exited){ .status = status, .stopped = stopped });
}

static void put_tunnel(struct buf *b, enum tunnel_kind kind)
{
        tunnel_encode(b, &(struct tunnel){ .child = 1, .kind = (uint8_t)kind });
}

TEST_WITH(set_up, tear_down, what_counts_by_its_time_is_foretold)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        begin();
        put_exited(&b, 0, 0);
        put_exited(&b, 256, 1);
        put_tunnel(&b, TUNNEL_BYTES);
        say(0, &b);
        heard("0:36 0:36 0:65 ");
        buf_clear(&b);
        empty_encode(&b, MSG_STARTED);
        put_exited(&b, 256, 0);
        empty_encode(&b, MSG_GONE);
        put_tunnel(&b, TUNNEL_CLOCK);
        say(0, &b);
        heard("0:33 0:news 0:36 0:37 0:news 0:65 ");
}

TEST_WITH(set_up, tear_down, who_goes_is_not_waited_for)
{
        begin();
        ask(0, STORE_GET, STORE_NODE, 1);
        ask(1, STORE_ADD, STORE_NODE, 1);
        ask(0, STORE_ADD, STORE_NODE, 2);
        relay_turn(world.relay);
        heard("GET ADD ");
        ask(0, STORE_ADD, STORE_NODE, 3);
        tunnel_filter_destroy(world.taps[0]);
        world.taps[0] = NULL;
        heard("CANCEL ");
        deliver(2);
        was_sent(1, "1=1 ");
        relay_turn(world.relay);
        heard("");
}

TEST_WITH(set_up, tear_down, what_is_no_frame_is_the_heads_to_judge)
{
        begin();
        say_text(0, "\377\377\377\377 and");
        say_text(0, " more");
        heard("\377\377\377\377 and more");
}
