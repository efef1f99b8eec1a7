/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the frame that an encoder has written, for tests of messages
 *
 * The macros take the name of a message, as in NAME_encode() and NAME_decode(), its type, and
 * behind them what its encoder takes.
 */
#pragma once

#include <errno.h>

#include "lib/unit.h"
#include "wire/frame.h"

/* Returns the first frame of a buffer, which must be complete. */
static inline struct frame first_frame(const struct buf *b)
{
        struct frame f;

        assert_int_equal(frame_peek(b, &f, NULL), 1);
        return f;
}

/* Returns the only frame of a buffer, which must be of a type. */
static inline struct frame only_frame(const struct buf *b, uint8_t type)
{
        struct frame f = first_frame(b);

        assert_int_equal(f.type, type);
        assert_int_equal(f.len + FRAME_HEADER, buf_len(b));
        return f;
}

/* The message of the macros; what its decoder lends stays until the next one. */
UNUSED static struct buf carried;

#define CARRY(name, type, ...)                                                                     \
        (buf_clear(&carried), name##_encode(&carried, __VA_ARGS__), only_frame(&carried, type))

/* Requires that the message is accepted; the test compares the fields of @to. */
#define ASSERT_COMES_BACK(name, type, to, ...)                                                     \
        do {                                                                                       \
                struct frame back = CARRY(name, type, __VA_ARGS__);                                \
                                                                                                   \
                assert_int_equal(name##_decode(to, &back, NULL), 0);                               \
        } while (0)

#define ASSERT_MALFORMED(name, type, ...)                                                          \
        do {                                                                                       \
                struct frame back = CARRY(name, type, __VA_ARGS__);                                \
                struct name refused;                                                               \
                                                                                                   \
                assert_int_equal(name##_decode(&refused, &back, NULL), -EPROTO);                   \
        } while (0)

/* Requires that the message is refused when it is cut anywhere, and with a byte more. */
#define ASSERT_ONLY_WHOLE(name, type, ...)                                                         \
        do {                                                                                       \
                struct frame part = CARRY(name, type, __VA_ARGS__);                                \
                size_t whole = part.len;                                                           \
                struct name refused;                                                               \
                                                                                                   \
                for (part.len = 0; part.len < whole; part.len++)                                   \
                        assert_int_equal(name##_decode(&refused, &part, NULL), -EPROTO);           \
                buf_append(&carried, "", 1);                                                       \
                part = (struct frame){ type, buf_data(&carried) + FRAME_HEADER, whole + 1 };       \
                assert_int_equal(name##_decode(&refused, &part, NULL), -EPROTO);                   \
        } while (0)
