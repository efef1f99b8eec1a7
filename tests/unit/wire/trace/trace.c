/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/trace/trace.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/msg.h"

static const struct trace_record records[] = {
        { .kind = TRACE_STEP, .us = 1000, .rank = 3, .number = 1840 },
        { .kind = TRACE_OP,
          .us = 1000,
          .rank = 3,
          .number = 13,
          .more = 250,
          .data = "k",
          .len = 1 },
        { .kind = TRACE_OUT, .us = 2000, .rank = 70000, .number = 2, .more = 161 },
        { .kind = TRACE_EXIT, .us = 2000000000, .rank = 1, .number = 9 },
        { .kind = TRACE_GAP, .us = 2000000001, .rank = 1, .number = UINT64_MAX },
        { .kind = TRACE_SAMPLE, .us = 2000000002, .data = "body", .len = 4 },
};

static void put_records(struct buf *b)
{
        uint64_t before = 900;

        trace_begin(b, before);
        for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
                trace_put(b, before, &records[i]);
                before = records[i].us;
        }
}

TEST(records_come_back)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct trace_record r;
        struct trace_reader t;

        put_records(&b);
        assert_true(trace_open(&t, buf_data(&b), buf_len(&b)));
        for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
                assert_true(trace_next(&t, &r));
                assert_int_equal(r.kind, records[i].kind);
                assert_true(r.us == records[i].us);
                assert_int_equal(r.rank, records[i].rank);
                assert_true(r.number == records[i].number);
                assert_true(r.more == records[i].more);
                assert_int_equal(r.len, records[i].len);
                if (r.len)
                        assert_memory_equal(r.data, records[i].data, r.len);
        }
        assert_false(trace_next(&t, &r));
        assert_false(t.in.failed);
}

TEST(a_torn_piece_ends_early)
{
        struct buf b = BUF_INIT;
        struct trace_record r;
        struct trace_reader t;
        unsigned char *bytes;
        size_t n;

        put_records(&b);
        for (size_t len = 0; len < buf_len(&b); len++) {
                if (!trace_open(&t, buf_data(&b), len)) {
                        assert_true(len < 8);
                        continue;
                }
                for (n = 0; trace_next(&t, &r); n++)
                        ;
                assert_true(n < ARRAY_SIZE(records));
        }
        n = buf_len(&b);
        bytes = (unsigned char *)buf_steal(&b);
        bytes[8] = TRACE_KINDS;
        assert_true(trace_open(&t, bytes, n));
        assert_false(trace_next(&t, &r));
        assert_true(t.in.failed);
        free(bytes);
}

TEST(an_answer_has_one_piece_at_most)
{
        static unsigned char large[TRACE_PIECE + 1];
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct recorded m;
        struct frame f;

        recorded_encode(&b, &(struct recorded){ true, "piece", 5 });
        f = first_frame(&b);
        assert_int_equal(recorded_decode(&m, &f, NULL), 0);
        assert_true(m.last);
        assert_int_equal(m.len, 5);
        buf_clear(&b);
        recorded_encode(&b, &(struct recorded){ false, large, sizeof(large) });
        f = first_frame(&b);
        assert_int_equal(recorded_decode(&m, &f, NULL), -EPROTO);
        f.len = 0;
        assert_int_equal(recorded_decode(&m, &f, NULL), -EPROTO);
}
