/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of one loop that pass PACKs on over the loopback device; the test is the head. */
#include "agent/tree/chain.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/uplink.h"
#include "agent/files/push_receiver.h"
#include "lib/frames.h"
#include "wire/msg.h"
#include "wire/push_msg.h"

enum { NODES = 3, PACKS = 3 * PUSH_RING, STREAM = 4 };

static uv_loop_t loop;
static struct uplink ups[NODES];
static struct push_receiver *receivers[NODES];
static struct chain *chains[NODES];
static uint32_t orders, taken[NODES];
static unsigned char key[PUSH_CHAIN_KEY] = { 1, 2, 3 };

static void ignore_change(void *ctx UNUSED)
{
}

static int set_up(void **state UNUSED)
{
        assert_true(sodium_init() >= 0);
        uv_loop_init(&loop);
        orders = 0;
        for (int i = 0; i < NODES; i++) {
                ups[i] = (struct uplink){ 0 };
                taken[i] = 0;
                receivers[i] = push_receiver_create(&ups[i], ignore_change, NULL);
                chains[i] = chain_create(&loop, &ups[i], receivers[i]);
        }
        return 0;
}

static int tear_down(void **state UNUSED)
{
        for (int i = 0; i < NODES; i++)
                chain_close(chains[i]);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        for (int i = 0; i < NODES; i++) {
                chain_destroy(chains[i]);
                push_receiver_destroy(receivers[i]);
                buf_finish(&ups[i].out);
        }
        return 0;
}

/* Waits for the next report of a node, and counts its TAKENs before. */
static struct chain_report next_report(int node)
{
        struct chain_report r;
        struct frame f;
        uint32_t n;

        for (;;) {
                while (frame_peek(&ups[node].out, &f, NULL) <= 0)
                        uv_run(&loop, UV_RUN_ONCE);
                if (f.type == MSG_TAKEN) {
                        assert_int_equal(number_decode(&n, &f, NULL), 0);
                        taken[node] += n;
                        frame_consume(&ups[node].out, &f);
                        continue;
                }
                assert_int_equal(f.type, MSG_CHAINED);
                assert_int_equal(chain_report_decode(&r, &f, NULL), 0);
                frame_consume(&ups[node].out, &f);
                return r;
        }
}

static void order(int node, enum chain_what what, uint32_t port, bool yields)
{
        struct chain_order m = { .number = ++orders,
                                 .stream = STREAM,
                                 .packs = PACKS,
                                 .what = (uint8_t)what,
                                 .yields = yields,
                                 .port = port };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        memcpy(m.key, key, sizeof(key));
        if (what == CHAIN_CONNECT)
                strv_push(&m.addrs, "127.0.0.1");
        chain_order_encode(&b, &m);
        strv_finish(&m.addrs);
        f = only_frame(&b, MSG_CHAIN);
        chain_on_chain(chains[node], &f);
}

static uint32_t listen_at(int node)
{
        struct chain_report r;

        order(node, CHAIN_LISTEN, 0, false);
        r = next_report(node);
        assert_int_equal(r.what, CHAINED_LISTENS);
        assert_int_equal(r.number, orders);
        assert_true(r.port > 0);
        return r.port;
}

static void join(int from, int to, bool yields)
{
        struct chain_report r;

        order(from, CHAIN_CONNECT, listen_at(to), yields);
        r = next_report(from);
        assert_int_equal(r.what, CHAINED_CONNECTED);
        assert_int_equal(r.number, orders);
}

/* Gives a PACK to the first node, as the head does. Returns its bytes. */
static uint32_t give(int node, uint32_t position)
{
        static unsigned char data[15000];
        struct push_piece piece = { 0, (uint64_t)position * sizeof(data), sizeof(data) };
        struct push_pack m = { .stream = STREAM,
                               .position = position,
                               .pieces = &piece,
                               .n = 1,
                               .data = data,
                               .len = sizeof(data) };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;

        push_pack_encode(&b, &m);
        f = only_frame(&b, MSG_PACK);
        chain_on_pack(chains[node], &f);
        return (uint32_t)buf_len(&b);
}

/* Closes what the node takes from. */
static uint32_t leave(int node)
{
        struct chain_report r;

        order(node, CHAIN_LEAVE, 0, false);
        r = next_report(node);
        assert_int_equal(r.what, CHAINED_LISTENS);
        assert_int_equal(r.port, 0);
        return r.position;
}

static void turn(int times)
{
        for (int i = 0; i < times; i++)
                uv_run(&loop, UV_RUN_NOWAIT);
}

TEST_WITH(set_up, tear_down, each_node_gets_all_of_the_stream)
{
        uint32_t bytes = 0;

        join(0, 1, false);
        join(1, 2, false);
        for (uint32_t i = 0; i < PACKS; i++) {
                bytes += give(0, i);
                turn(4);
        }
        turn(1000);
        assert_int_equal(leave(2), PACKS);
        assert_int_equal(leave(1), PACKS);
        assert_int_equal(leave(0), PACKS);
        assert_int_equal(taken[0], bytes);
        assert_int_equal(taken[1], 0); /* they come from another node */
}

TEST_WITH(set_up, tear_down, pieces_of_the_past_and_the_future_are_ignored)
{
        give(0, 0);
        give(0, 0);
        give(0, 2);
        assert_int_equal(leave(0), 1);
}

TEST_WITH(set_up, tear_down, a_stream_goes_on_behind_a_lost_node)
{
        struct chain_report r;

        join(0, 1, false);
        join(1, 2, false);
        for (uint32_t i = 0; i < 8; i++)
                give(0, i);
        turn(100);
        chain_close(chains[1]);
        r = next_report(0);
        assert_int_equal(r.what, CHAINED_BROKEN);
        assert_int_equal(r.position, 8);
        for (uint32_t i = 8; i < 60; i++)
                give(0, i);
        join(0, 2, false);
        turn(1000);
        assert_int_equal(leave(2), 60);
        chain_destroy(chains[1]);
        chains[1] = chain_create(&loop, &ups[1], receivers[1]);
}

TEST_WITH(set_up, tear_down, the_head_waits_for_a_node_behind)
{
        uint32_t bytes = 0;

        order(0, CHAIN_CONNECT, 1, false); /* nobody is there */
        assert_int_equal(next_report(0).error, ECONNREFUSED);
        for (uint32_t i = 0; i < 200; i++)
                bytes += give(0, i);
        turn(10);
        assert_int_equal(leave(0), 200);
        assert_true(taken[0] < bytes / 2);
        order(0, CHAIN_LAST, 0, false);
        leave(0);
        assert_int_equal(taken[0], bytes);
}

TEST_WITH(set_up, tear_down, nobody_waits_for_a_node_that_yields)
{
        struct chain_report r;
        uint32_t bytes = 0;

        join(0, 1, true);
        for (uint32_t i = 0; i < PACKS; i++) /* the loop does not turn meanwhile */
                bytes += give(0, i);
        r = next_report(0);
        assert_int_equal(r.what, CHAINED_BROKEN);
        assert_int_equal(r.error, ERANGE);
        assert_int_equal(leave(0), PACKS);
        assert_int_equal(taken[0], bytes);
        assert_true(leave(1) < PACKS);
}

TEST_WITH(set_up, tear_down, a_node_without_what_is_kept_no_more_is_refused)
{
        order(0, CHAIN_LAST, 0, false);
        for (uint32_t i = 0; i < PACKS; i++)
                give(0, i);
        order(0, CHAIN_CONNECT, listen_at(1), false);
        assert_int_equal(next_report(0).what, CHAINED_CONNECTED);
        assert_int_equal(next_report(0).error, ERANGE);
}

static int connect_plainly(uint32_t port)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        connect(fd, (struct sockaddr *)&at, sizeof(at));
        return fd;
}

TEST_WITH(set_up, tear_down, strangers_get_nothing_and_disturb_nothing)
{
        uint32_t port = listen_at(1);
        int silent[40], loud;
        char byte;

        for (int i = 0; i < 40; i++)
                silent[i] = connect_plainly(port);
        turn(20);
        loud = connect_plainly(port);
        turn(20);
        assert_true(write(loud,
                          "HNDIAL1\n0123456789012345678901234567890123456789012345678901234567",
                          64) == 64);
        turn(20);
        assert_int_equal(read(loud, &byte, 1), 0); /* closed without a byte */

        /* Another node with a wrong key. */
        key[0] ^= 1;
        order(2, CHAIN_CONNECT, port, false);
        key[0] ^= 1;
        assert_int_equal(next_report(2).what, CHAINED_BROKEN);

        order(0, CHAIN_CONNECT, port, false);
        assert_int_equal(next_report(0).what, CHAINED_CONNECTED);
        give(0, 0);
        turn(100);
        assert_int_equal(leave(1), 1);
        for (int i = 0; i < 40; i++)
                close(silent[i]);
        close(loud);
        close(connect_plainly(port)); /* closed since the peer has come */
}
