/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hold/prepared.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "wire/msg.h"
#include "wire/tree_msg.h"

/* Two nodes, of which node 1 may be lost, and what was told of them. */
static struct {
        uv_loop_t loop;
        struct buf out[2];
        bool lost, silent;
        int changes[2], frames, status;
        struct prepared_agents *p;
} t;

static struct buf *out_of(void *ctx UNUSED, size_t i)
{
        return i == 1 && t.lost ? NULL : &t.out[i];
}

static const char *name_of(void *ctx UNUSED, size_t i)
{
        return i ? "node1" : "node0";
}

static bool is_silent(void *ctx UNUSED, size_t i UNUSED)
{
        return t.silent;
}

static void on_changed(void *ctx UNUSED, size_t i)
{
        t.changes[i]++;
}

static void on_ended(void *ctx UNUSED, size_t i, uint64_t run, int status)
{
        assert_int_equal(i, 0);
        assert_int_equal(run, 9);
        t.status = status;
}

static void on_frame(void *ctx UNUSED, size_t i UNUSED, const struct frame *f UNUSED)
{
        t.frames++;
}

static int set_up(void **state UNUSED)
{
        static const struct prepared_ops ops = { .changed = on_changed,
                                                 .ended = on_ended,
                                                 .frame = on_frame };
        static const struct hold_nodes nodes = { out_of, name_of, is_silent, NULL };

        memset(&t, 0, sizeof(t));
        uv_loop_init(&t.loop);
        t.p = prepared_create(&t.loop, &nodes, 2, &ops, NULL);
        return 0;
}

static int tear_down(void **state UNUSED)
{
        prepared_close(t.p);
        prepared_destroy(t.p);
        uv_run(&t.loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&t.loop), 0);
        buf_finish(&t.out[0]);
        buf_finish(&t.out[1]);
        return 0;
}

/* Takes the next frame for node @i, which must be of @type. */
static struct frame next_order(size_t i, uint8_t type)
{
        struct error err;
        struct frame f;

        assert_int_equal(frame_peek(&t.out[i], &f, &err), 1);
        assert_int_equal(f.type, type);
        return f;
}

/* Takes the order to start an agent on node @i; returns its number. */
static uint32_t started(size_t i)
{
        struct frame f = next_order(i, MSG_CHILD_AGENT);
        struct child_agent_order o;
        struct error err;
        uint32_t number;

        assert_int_equal(child_agent_order_decode(&o, &f, &err), 0);
        assert_int_equal(o.argv.n, 0);
        number = o.number;
        child_agent_order_finish(&o);
        frame_consume(&t.out[i], &f);
        return number;
}

static void tell(size_t i, struct tunnel m)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        tunnel_encode(&b, &m);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(prepared_receive(t.p, i, &f, &err), 0);
}

static void tell_bytes(size_t i, uint32_t number, const void *data, size_t len)
{
        tell(i, (struct tunnel){ .child = number, .kind = TUNNEL_BYTES, .data = data, .len = len });
}

/* The agent greets, byte by byte. */
static void greet(size_t i, uint32_t number)
{
        struct hello h = { .version = MSG_VERSION, .cores = 7, .mono_ns = 1 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        buf_appends(&b, MSG_MAGIC);
        hello_encode(&b, &h);
        for (size_t k = 0; k < buf_len(&b); k++)
                tell_bytes(i, number, buf_data(&b) + k, 1);
}

/* Returns the bytes that the hold has sent to the agent, and takes them off; malloc'ed. */
static char *sent(size_t i, uint32_t number, size_t *ret_len)
{
        struct buf all = BUF_INIT;
        struct error err;
        struct tunnel m;
        struct frame f;

        while (frame_peek(&t.out[i], &f, &err) > 0 && f.type == MSG_TUNNEL) {
                assert_int_equal(tunnel_decode(&m, &f, &err), 0);
                assert_int_equal(m.child, number);
                buf_append(&all, m.data, m.len);
                frame_consume(&t.out[i], &f);
        }
        *ret_len = buf_len(&all);
        return buf_steal(&all);
}

/* Starts an agent on node @i, which greets and is pinged for its clock; returns its number. */
static uint32_t prepare(size_t i)
{
        uint32_t number;
        size_t len;

        prepared_begin(t.p, i);
        number = started(i);
        assert_int_equal(prepared_state(t.p, i), PREPARED_NOT_YET);
        greet(i, number);
        free(sent(i, number, &len));
        assert_true(len > 0);
        return number;
}

static void turn(void)
{
        for (int i = 0; i < 3; i++)
                uv_run(&t.loop, UV_RUN_NOWAIT);
}

/* Requires that the stream of a run ends behind what was sent on it. */
static void expect_end(int fd)
{
        char got[4096];
        ssize_t n;

        turn();
        do
                n = read(fd, got, sizeof(got));
        while (n > 0);
        assert_int_equal(n, 0);
        close(fd);
}

TEST_WITH(set_up, tear_down, a_run_reads_the_greeting_as_if_it_were_sent_now)
{
        CLEANUP(buf_finish) struct buf got = BUF_INIT;
        CLEANUP(hello_finish) struct hello h;
        struct error err;
        struct frame f;
        int fd;

        prepare(0);
        assert_int_equal(prepared_state(t.p, 0), PREPARED_READY);
        assert_int_equal(t.changes[0], 1);
        t.silent = true;
        assert_int_equal(prepared_state(t.p, 0), PREPARED_SILENT);
        t.silent = false;
        usleep(2000);
        fd = prepared_take(t.p, 0, 9);
        assert_true(fd >= 0);
        buf_advance(&got, (size_t)read(fd, buf_reserve(&got, 4096), 4096));
        assert_memory_equal(buf_data(&got), MSG_MAGIC, strlen(MSG_MAGIC));
        buf_consume(&got, strlen(MSG_MAGIC));
        assert_int_equal(frame_peek(&got, &f, &err), 1);
        assert_int_equal(f.type, MSG_HELLO);
        assert_int_equal(hello_decode(&h, &f, &err), 0);
        assert_int_equal(h.cores, 7);
        assert_true(h.mono_ns >= 2000000); /* the agent's clock was at 1 when it greeted */
        close(fd);
        turn();
}

TEST_WITH(set_up, tear_down, bytes_pass_both_ways_and_the_end_prunes)
{
        uint32_t number = prepare(0), pruned, next;
        int fd = prepared_take(t.p, 0, 9);
        char *text, got[16] = "";
        struct error err;
        struct frame f;
        size_t len;

        while (read(fd, got, sizeof(got)) == sizeof(got))
                ;
        tell_bytes(0, number, "up", 2);
        assert_int_equal(read(fd, got, sizeof(got)), 2);
        assert_memory_equal(got, "up", 2);
        assert_int_equal(write(fd, "down", 4), 4);
        turn();
        text = sent(0, number, &len);
        assert_int_equal(len, 4);
        assert_memory_equal(text, "down", 4);
        free(text);
        assert_int_equal(prepared_taken(t.p), 1);
        assert_int_equal(buf_len(&t.out[0]), 0); /* no agent is started beside the run's ranks */
        close(fd);
        turn();
        f = next_order(0, MSG_PRUNE);
        assert_int_equal(number_decode(&pruned, &f, &err), 0);
        assert_int_equal(pruned, number);
        frame_consume(&t.out[0], &f);
        next = started(0);
        assert_int_not_equal(next, number);
        greet(0, next);
        assert_int_equal(prepared_state(t.p, 0), PREPARED_READY); /* while the other one ends */
        free(sent(0, next, &len));
        tell(0, (struct tunnel){ .child = number, .kind = TUNNEL_ENDED });
        turn();
        assert_int_equal(prepared_taken(t.p), 0);
        assert_int_equal(buf_len(&t.out[0]), 0); /* one next agent is enough */
}

TEST_WITH(set_up, tear_down, a_run_cannot_send_beyond_the_window)
{
        static char block[64 << 10];
        uint32_t number = prepare(0);
        int fd = prepared_take(t.p, 0, 9);
        size_t len, most = 0;

        for (int i = 0; i < 64; i++) {
                (void)!send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
                turn();
                free(sent(0, number, &len));
                most += len;
        }
        assert_true(most <= TUNNEL_WINDOW);
        tell(0, (struct tunnel){ .child = number, .kind = TUNNEL_TOOK, .number = 4096 });
        free(sent(0, number, &len));
        assert_int_equal(len, 4096);
        close(fd);
        turn();
}

TEST_WITH(set_up, tear_down, an_agent_that_cannot_start_is_tried_three_times)
{
        for (int i = 0; i < 3; i++) {
                uint32_t number;

                assert_int_equal(prepared_state(t.p, 1), PREPARED_NOT_YET);
                if (!i)
                        prepared_begin(t.p, 1);
                number = started(1);
                tell(1, (struct tunnel){ .child = number,
                                         .kind = TUNNEL_FAILED,
                                         .data = (void *)"no",
                                         .len = 2 });
        }
        assert_int_equal(prepared_state(t.p, 1), PREPARED_NEVER);
        assert_int_equal(t.changes[1], 1);
}

/* As when the import of modules takes the memory of the node. */
TEST_WITH(set_up, tear_down, an_agent_that_ends_before_it_is_of_use_is_tried_three_times)
{
        prepared_begin(t.p, 1);
        for (int i = 0; i < 3; i++) {
                uint32_t number = started(1);

                greet(1, number);
                free(sent(1, number, &(size_t){ 0 }));
                assert_int_equal(prepared_state(t.p, 1), PREPARED_READY);
                tell(1, (struct tunnel){ .child = number, .kind = TUNNEL_ENDED });
        }
        assert_int_equal(prepared_state(t.p, 1), PREPARED_NEVER);
}

TEST_WITH(set_up, tear_down, an_idle_agent_gets_the_pings_that_it_asks_for)
{
        struct buf b = BUF_INIT;
        uint32_t number = prepare(0);
        size_t len;

        empty_encode(&b, MSG_PING_REQUEST);
        tell_bytes(0, number, buf_data(&b), buf_len(&b));
        buf_finish(&b);
        free(sent(0, number, &len));
        assert_true(len > 0);
        leaving_encode(&b, "why");
        tell_bytes(0, number, buf_data(&b), buf_len(&b));
        buf_finish(&b);
        assert_int_equal(t.frames, 1);
}

TEST_WITH(set_up, tear_down, a_lost_node_ends_the_streams_of_its_runs)
{
        int fd;

        prepare(1);
        fd = prepared_take(t.p, 1, 9);
        t.lost = true;
        prepared_lost(t.p, 1);
        expect_end(fd);
        assert_int_equal(prepared_state(t.p, 1), PREPARED_NEVER);
}

TEST_WITH(set_up, tear_down, the_end_of_an_agent_is_told_and_ends_the_stream)
{
        uint32_t number = prepare(0);
        int fd = prepared_take(t.p, 0, 9);

        tell(0, (struct tunnel){ .child = number, .kind = TUNNEL_ENDED, .number = 137 });
        assert_int_equal(t.status, 137);
        expect_end(fd);
}

TEST_WITH(set_up, tear_down, a_malformed_greeting_is_no_agent)
{
        uint32_t number;

        prepared_begin(t.p, 0);
        number = started(0);
        tell_bytes(0, number, "this is no banner of an agent\n", 30);
        assert_int_equal(prepared_state(t.p, 0), PREPARED_NEVER);
        assert_int_equal(t.changes[0], 1);
        next_order(0, MSG_PRUNE);
}
