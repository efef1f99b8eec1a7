/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the frame that an encoder has written, for tests of messages
 */
#pragma once

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
