/* SPDX-License-Identifier: Apache-2.0 */
/* The test answers for the nodes. */
#include "head/job/push_chain.h"

#include <errno.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/push/pack_stream.h"
#include "job_nodes.h"
#include "lib/frames.h"
#include "wire/msg.h"
#include "wire/push_msg.h"

enum { NODES = JOB_NODES, NOT_SERVED = -1 };

struct world {
        struct job_nodes on;
        struct push_entry entry;
        struct manifest manifest;
        struct pack_stream *packs;
        struct push_chain *chain;
        int served[NODES]; /* from which position */
        int sampled;       /* the node with the last sample */
        struct chain_order last[NODES];
};

static void on_serve(void *ctx, size_t node, uint32_t position)
{
        ((struct world *)ctx)->served[node] = (int)position;
}

static void on_rest(void *ctx, size_t node)
{
        ((struct world *)ctx)->served[node] = NOT_SERVED;
}

static uint64_t on_sample(void *ctx, size_t node, size_t first, uint64_t bytes, uint64_t least)
{
        assert_int_equal(first, 0);
        assert_int_equal(least, 0); /* the first node takes nothing */
        ((struct world *)ctx)->sampled = (int)node;
        return bytes;
}

static int set_up(void **state)
{
        static const struct push_chain_ops ops = { on_serve, on_rest, on_sample, on_rest };
        static const size_t row[NODES] = { 0, 1, 2, 3 };
        static const uint32_t first[] = { 0 };
        struct world *w = xcalloc(1, sizeof(*w));

        job_nodes_open(&w->on, NODES, NODE_READY);
        for (int i = 0; i < NODES; i++)
                w->served[i] = NOT_SERVED;
        w->entry = (struct push_entry){ .kind = PUSH_FILE, .size = 100 * PUSH_PACK_MAX };
        w->manifest = (struct manifest){ .manifest = { &w->entry, 1 }, .fd = -1 };
        w->packs = pack_stream_create(&w->manifest, 1, 1, first, 1);
        w->chain = push_chain_create(&w->on.cluster, &ops, w);
        push_chain_begin(w->chain, w->packs, row, NODES);
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        push_chain_free(w->chain);
        pack_stream_free(w->packs);
        job_nodes_close(&w->on);
        job_nodes_finish(&w->on);
        for (int i = 0; i < NODES; i++)
                chain_order_finish(&w->last[i]);
        free(w);
        return 0;
}

/* Returns the next order for a node, which must be of this kind. */
static const struct chain_order *ordered(struct world *w, int node, enum chain_what what)
{
        struct buf *out = &w->on.nodes[node].out;
        struct chain_order *m = &w->last[node];
        struct frame f;

        assert_int_equal(frame_peek(out, &f, NULL), 1);
        assert_int_equal(f.type, MSG_CHAIN);
        chain_order_finish(m);
        assert_int_equal(chain_order_decode(m, &f, NULL), 0);
        frame_consume(out, &f);
        assert_int_equal(m->what, what);
        return m;
}

static void says(struct world *w, int node, uint32_t number, enum chained_what what,
                 uint32_t position, int error)
{
        struct chain_report m = { .number = number,
                                  .stream = 1,
                                  .what = (uint8_t)what,
                                  .position = position,
                                  .port = what == CHAINED_LISTENS && !error ? 4000 + (uint32_t)node
                                                                            : 0,
                                  .error = (uint32_t)error };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        chain_report_encode(&b, &m);
        f = only_frame(&b, MSG_CHAINED);
        assert_int_equal(push_chain_report(w->chain, (size_t)node, &f, &err), 0);
}

/* Plays a connection from one node to another; the orders are the next ones of both. */
static void connects(struct world *w, int from, int to, uint32_t position)
{
        says(w, to, ordered(w, to, CHAIN_LISTEN)->number, CHAINED_LISTENS, position, 0);
        assert_int_equal(ordered(w, from, CHAIN_CONNECT)->port, 4000 + to);
        assert_memory_equal(w->last[from].key, w->last[to].key, PUSH_CHAIN_KEY);
        says(w, from, w->last[from].number, CHAINED_CONNECTED, position, 0);
}

static void all_connect(struct world *w)
{
        for (int i = 1; i < NODES; i++)
                connects(w, i - 1, i, 0);
}

static void lose(struct world *w, int node)
{
        w->on.nodes[node].state = NODE_FAILED;
        push_chain_check(w->chain);
        w->on.nodes[node].state = NODE_READY; /* for node_close() */
}

#define TEST_WORLD(name) TEST_OF(set_up, tear_down, struct world *w, name)

TEST_WORLD(the_head_serves_the_first_when_all_ports_are_known)
{
        for (int i = 1; i < NODES; i++) {
                assert_int_equal(w->served[0], NOT_SERVED);
                connects(w, i - 1, i, 0);
        }
        assert_int_equal(w->served[0], 0);
        for (int i = 1; i < NODES; i++) {
                assert_int_equal(w->served[i], NOT_SERVED);
                assert_int_equal(push_chain_source(w->chain, (size_t)i), i - 1);
        }
        for (size_t i = 0; i < NODES; i++) {
                assert_true(push_chain_has(w->chain, i));
                push_chain_done(w->chain, i);
        }
        for (int i = 0; i < NODES; i++) {
                ordered(w, i, CHAIN_END);
                assert_false(push_chain_has(w->chain, (size_t)i));
        }
}

TEST_WORLD(a_node_that_is_not_reached_is_served_by_the_head)
{
        connects(w, 0, 1, 0);
        says(w, 2, ordered(w, 2, CHAIN_LISTEN)->number, CHAINED_LISTENS, 0, 0);
        connects(w, 2, 3, 0);
        says(w, 1, ordered(w, 1, CHAIN_CONNECT)->number, CHAINED_BROKEN, 0, ETIMEDOUT);
        ordered(w, 1, CHAIN_LAST);
        assert_int_equal(w->served[2], NOT_SERVED);
        says(w, 2, ordered(w, 2, CHAIN_LEAVE)->number, CHAINED_LISTENS, 5, 1);
        assert_int_equal(w->served[2], 5);
        assert_int_equal(push_chain_source(w->chain, 2), -1);
        assert_int_equal(push_chain_source(w->chain, 3), 2);
}

TEST_WORLD(the_node_behind_a_lost_one_gets_the_one_before)
{
        all_connect(w);
        says(w, 0, w->last[0].number, CHAINED_BROKEN, 7, ECONNRESET);
        lose(w, 1);
        connects(w, 0, 2, 6);
        assert_int_equal(push_chain_source(w->chain, 2), 0);

        /* The first one: the head takes its place. */
        lose(w, 0);
        says(w, 2, ordered(w, 2, CHAIN_LEAVE)->number, CHAINED_LISTENS, 9, 1);
        assert_int_equal(w->served[2], 9);

        lose(w, 3); /* the last one */
        ordered(w, 2, CHAIN_LAST);
}

TEST_WORLD(a_slow_node_moves_to_the_end)
{
        uint32_t number;

        all_connect(w);
        says(w, 0, number = w->last[0].number, CHAINED_SLOW, 30, 0);
        ordered(w, 1, CHAIN_LAST);
        says(w, 1, ordered(w, 1, CHAIN_LISTEN)->number, CHAINED_LISTENS, 20, 0);
        assert_true(ordered(w, 3, CHAIN_CONNECT)->yields);
        connects(w, 0, 2, 10);
        assert_false(w->last[0].yields);
        assert_int_equal(push_chain_source(w->chain, 2), 0);
        assert_int_equal(push_chain_source(w->chain, 1), 3);
        says(w, 0, number, CHAINED_BROKEN, 30, ECONNRESET); /* late, about the node before */
        assert_int_equal(buf_len(&w->on.nodes[0].out), 0);

        /* It falls back, and waits for the others. */
        says(w, 3, w->last[3].number, CHAINED_CONNECTED, 20, 0);
        says(w, 3, w->last[3].number, CHAINED_BROKEN, 99, ERANGE);
        ordered(w, 3, CHAIN_LAST);
        says(w, 1, ordered(w, 1, CHAIN_LEAVE)->number, CHAINED_LISTENS, 25, 1);
        assert_int_equal(w->served[1], NOT_SERVED);
        push_chain_done(w->chain, 0);
        push_chain_done(w->chain, 2);
        assert_int_equal(w->served[1], NOT_SERVED);
        push_chain_done(w->chain, 3);
        assert_int_equal(w->served[1], 25);
}

TEST_WORLD(the_last_of_nodes_that_wait_for_each_other_is_slow)
{
        all_connect(w);
        says(w, 1, w->last[1].number, CHAINED_SLOW, 30, 0); /* the third is slow */
        says(w, 0, w->last[0].number, CHAINED_SLOW, 30, 0); /* the second waits */
        ordered(w, 2, CHAIN_LAST);
        assert_int_equal(buf_len(&w->on.nodes[0].out), 0);
        assert_int_equal(push_chain_source(w->chain, 1), 0);
        assert_int_equal(push_chain_source(w->chain, 3), 1);
}

TEST_WORLD(a_node_that_finds_two_others_slow_is_slow)
{
        all_connect(w);
        says(w, 1, w->last[1].number, CHAINED_SLOW, 30, 0);
        ordered(w, 2, CHAIN_LAST);
        connects(w, 1, 3, 10);
        says(w, 2, ordered(w, 2, CHAIN_LISTEN)->number, CHAINED_LISTENS, 20, 0);
        says(w, 3, ordered(w, 3, CHAIN_CONNECT)->number, CHAINED_CONNECTED, 10, 0);
        says(w, 1, w->last[1].number, CHAINED_SLOW, 40, 0);
        assert_int_equal(push_chain_source(w->chain, 3), 0);
        assert_int_equal(push_chain_source(w->chain, 2), 3);
        assert_int_equal(push_chain_source(w->chain, 1), 2);
}

TEST_WORLD(so_is_a_first_node)
{
        all_connect(w);
        says(w, 0, w->last[0].number, CHAINED_SLOW, 30, 0);
        ordered(w, 1, CHAIN_LAST);
        connects(w, 0, 2, 10);
        says(w, 1, ordered(w, 1, CHAIN_LISTEN)->number, CHAINED_LISTENS, 20, 0);
        says(w, 3, ordered(w, 3, CHAIN_CONNECT)->number, CHAINED_CONNECTED, 20, 0);
        says(w, 0, w->last[0].number, CHAINED_SLOW, 40, 0);
        ordered(w, 0, CHAIN_LAST);
        assert_int_equal(w->served[0], NOT_SERVED);
        says(w, 2, ordered(w, 2, CHAIN_LEAVE)->number, CHAINED_LISTENS, 12, 1);
        assert_int_equal(w->served[2], 12);
        assert_int_equal(push_chain_source(w->chain, 0), 1);
}

TEST_WORLD(a_first_node_is_slow_when_another_takes_a_sample_sooner)
{
        all_connect(w);
        w->sampled = -1;
        for (int i = 0; i < 600 && w->sampled < 0; i++) {
                push_chain_check(w->chain);
                usleep(100000);
        }
        assert_int_equal(w->sampled, 1);
        push_chain_taken(w->chain, 1, 100 << 10); /* not yet all of it */
        assert_int_equal(w->served[0], 0);
        push_chain_taken(w->chain, 1, 100 << 10);
        ordered(w, 0, CHAIN_LAST);
        assert_int_equal(w->served[0], NOT_SERVED);
        assert_int_equal(push_chain_source(w->chain, 0), 3);
        says(w, 1, ordered(w, 1, CHAIN_LEAVE)->number, CHAINED_LISTENS, 3, 1);
        assert_int_equal(w->served[1], 3);
}

TEST_WORLD(a_slow_last_node_only_yields)
{
        all_connect(w);
        says(w, 2, w->last[2].number, CHAINED_SLOW, 30, 0);
        ordered(w, 2, CHAIN_YIELD);
        assert_int_equal(buf_len(&w->on.nodes[3].out), 0);
}
