/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/node_trace.h"

#include "lib/unit.h"
#include "wire/msg.h"

/* What the head gets: the records of all pieces, one after the other. */
struct sent {
        size_t pieces, records, ops, gaps, bytes;
        uint64_t skipped, lines, output;
        struct trace_record last;
};

static void read_sent(struct buf *in, struct sent *to)
{
        struct frame f;
        bool last = false;

        *to = (struct sent){ 0 };
        while (frame_peek(in, &f, NULL) == 1) {
                struct trace_record r;
                struct trace_reader t;
                struct recorded m;

                assert_false(last);
                assert_int_equal(f.type, MSG_RECORDED);
                assert_int_equal(recorded_decode(&m, &f, NULL), 0);
                last = m.last;
                to->pieces += m.len > 0;
                to->bytes += m.len;
                if (m.len)
                        assert_true(trace_open(&t, m.piece, m.len));
                while (m.len && trace_next(&t, &r)) {
                        assert_true(r.us >= to->last.us);
                        to->last = r;
                        to->records++;
                        to->ops += r.kind == TRACE_OP;
                        to->gaps += r.kind == TRACE_GAP;
                        to->skipped += r.kind == TRACE_GAP ? r.number : 0;
                        to->lines += r.kind == TRACE_OUT ? r.number : 0;
                        to->output += r.kind == TRACE_OUT ? r.more >> 1 : 0;
                }
                frame_consume(in, &f);
        }
        assert_true(last);
}

/* The uplink takes a part at a time: the head reads what is there when it is full. */
static void send_trace(struct node_trace *t, uint32_t max, struct sent *to)
{
        struct uplink up = { 0 };
        CLEANUP(buf_finish) struct buf in = BUF_INIT;

        node_trace_send(t, max);
        do {
                up.full = false;
                node_trace_turn(t, &up);
                buf_append(&in, buf_data(&up.out), buf_len(&up.out));
                buf_clear(&up.out);
        } while (up.full);
        read_sent(&in, to);
        buf_finish(&up.out);
}

TEST(an_empty_trace_has_an_answer)
{
        struct node_trace *t = node_trace_create();
        struct sent s;

        send_trace(t, 10, &s);
        assert_int_equal(s.pieces, 0);
        node_trace_destroy(t);
        node_trace_op(NULL, 1, 2, 0, 0, (struct bytes){ 0 });
        node_trace_destroy(NULL);
}

TEST(a_rank_that_asks_without_pause_is_counted)
{
        enum { OPS = 100000 };
        struct node_trace *t = node_trace_create();
        struct sent s;

        for (int i = 0; i < OPS; i++)
                node_trace_op(t, 5, STORE_ADD, STORE_OK, 20, (struct bytes){ "counter", 7 });
        node_trace_exit(t, 5, 256);
        send_trace(t, NODE_TRACE_PIECES, &s);
        assert_true(s.ops >= 512 && s.ops < OPS / 10);
        assert_true(s.ops + s.skipped <= OPS);
        assert_int_equal(s.last.kind, TRACE_EXIT);
        assert_int_equal(s.last.rank, 5);
        assert_int_equal(s.last.number, 256);
        node_trace_destroy(t);
}

TEST(no_output_is_lost_between_records)
{
        struct node_trace *t = node_trace_create();
        struct sent s;

        for (int i = 0; i < 500; i++)
                node_trace_output(t, 2, MSG_STDOUT, "a\nb\n", 4);
        send_trace(t, NODE_TRACE_PIECES, &s);
        assert_int_equal(s.lines, 1000);
        assert_int_equal(s.output, 2000);
        node_trace_destroy(t);
}

TEST(the_newest_pieces_stay_and_are_sent)
{
        struct sample_rank ranks[64] = { 0 };
        struct sample m = { .ranks = ranks, .n_ranks = ARRAY_SIZE(ranks) };
        struct node_trace *t = node_trace_create();
        struct sent all, some;

        for (int i = 0; i < 20000; i++)
                node_trace_sample(t, &m);
        node_trace_exit(t, 7, 9);
        send_trace(t, UINT32_MAX, &all);
        assert_int_equal(all.pieces, NODE_TRACE_PIECES);
        assert_true(all.bytes <= 4 << 20);
        assert_true(all.bytes > 3 << 20);
        assert_int_equal(all.last.kind, TRACE_EXIT);
        send_trace(t, 2, &some);
        assert_int_equal(some.pieces, 2);
        assert_int_equal(some.last.kind, TRACE_EXIT);
        node_trace_destroy(t);
}
