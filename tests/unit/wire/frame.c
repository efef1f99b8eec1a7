/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/frame.h"

static void put_frame(struct buf *b, uint8_t type, const void *body, size_t len)
{
        size_t mark = frame_begin(b, type);

        buf_append(b, body, len);
        frame_end(b, mark);
}

TEST(frames_come_out_whole_and_in_order)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame f;
        struct error err;

        put_frame(&b, 7, "hello", 5);
        put_frame(&b, 8, "", 0);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(f.type, 7);
        assert_int_equal(f.len, 5);
        assert_memory_equal(f.body, "hello", 5);
        frame_consume(&b, &f);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(f.type, 8);
        assert_int_equal(f.len, 0);
        frame_consume(&b, &f);
        assert_int_equal(buf_len(&b), 0);
        assert_int_equal(frame_peek(&b, &f, &err), 0);
}

TEST(a_frame_may_arrive_byte_by_byte)
{
        CLEANUP(buf_finish) struct buf whole = BUF_INIT, in = BUF_INIT;
        struct frame f;
        struct error err;

        put_frame(&whole, 3, "abc", 3);
        for (size_t i = 0; i < buf_len(&whole); i++) {
                assert_int_equal(frame_peek(&in, &f, &err), 0);
                buf_append(&in, buf_data(&whole) + i, 1);
        }
        assert_int_equal(frame_peek(&in, &f, &err), 1);
        assert_memory_equal(f.body, "abc", 3);
}

TEST(impossible_lengths_are_refused_at_once)
{
        static const uint32_t lengths[] = { 0, FRAME_MAX + 1, UINT32_MAX };
        struct error err;
        struct frame f;

        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                put_u32(&b, lengths[i]);
                put_u8(&b, 1);
                assert_int_equal(frame_peek(&b, &f, &err), -EPROTO);
                assert_int_equal(err.code, EPROTO);
        }
}

TEST(the_largest_frame_is_waited_for)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        put_u32(&b, FRAME_MAX);
        put_u8(&b, 1);
        assert_int_equal(frame_peek(&b, &f, &err), 0);
}

TEST(what_is_missing_is_known_with_the_length)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        assert_int_equal(frame_missing(&b), 0);
        put_u8(&b, 9);
        assert_int_equal(frame_missing(&b), 0);
        put_u8(&b, 0);
        put_u8(&b, 0);
        put_u8(&b, 0);
        assert_int_equal(frame_missing(&b), 9);
        buf_append(&b, "12345678", 8);
        assert_int_equal(frame_missing(&b), 1);
        put_u8(&b, 0);
        assert_int_equal(frame_missing(&b), 0);
        put_u8(&b, 0);
        assert_int_equal(frame_missing(&b), 0);
        buf_clear(&b);
        put_u32(&b, FRAME_MAX + 1);
        assert_int_equal(frame_missing(&b), 0);
}

TEST(marks_hold_behind_consumed_bytes)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;
        struct frame f;

        put_frame(&b, 1, "gone", 4);
        put_frame(&b, 2, "kept", 4);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        frame_consume(&b, &f);
        put_frame(&b, 3, "late", 4);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(f.type, 2);
        frame_consume(&b, &f);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_memory_equal(f.body, "late", 4);
}

TEST(a_walk_stops_behind_every_frame)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct frame_walk w = { 0 };
        size_t at = 0;

        put_frame(&b, 1, "long one", 8);
        put_frame(&b, 2, "", 0);
        assert_true(frame_walk_between(&w));
        assert_int_equal(frame_walk(&w, buf_data(&b), buf_len(&b)), FRAME_HEADER + 8);
        assert_true(frame_walk_between(&w));
        assert_int_equal(frame_walk(&w, buf_data(&b) + FRAME_HEADER + 8, 3), 3);
        assert_false(frame_walk_between(&w));
        assert_int_equal(frame_walk(&w, buf_data(&b) + FRAME_HEADER + 11, 100), 2);
        for (int i = 0; i < FRAME_HEADER + 8; i++) {
                assert_int_equal(frame_walk(&w, buf_data(&b) + i, 1), 1);
                at += frame_walk_between(&w);
        }
        assert_int_equal(at, 1);
}
