/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame: a length and a type around a body, on any byte stream
 *
 *   u32 length of type and body | u8 type | body ...
 *
 * The same frame is used between head and agent and between agent and libhnlaunch.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum {
        FRAME_HEADER = 5,
        FRAME_MAX = 32 << 20, /* largest length: a 16 MiB value and its frame, with a reserve */
};

struct frame {
        uint8_t type;
        const unsigned char *body; /* lent by the buffer until it changes */
        size_t len;
};

/* Begins a frame; returns the mark by which frame_end() finds the length to fill in. */
size_t frame_begin(struct buf *b, uint8_t type);
void frame_end(struct buf *b, size_t mark);
/* The same for a body of which @more bytes follow, but not through this buffer. */
void frame_end_before(struct buf *b, size_t mark, size_t more);

/* Looks at the front of @in. 1: @ret_frame is whole (then call frame_consume), 0: more bytes are
 * needed, -EPROTO: the length is impossible, the stream is lost. */
int frame_peek(const struct buf *in, struct frame *ret_frame, struct error *err);
void frame_consume(struct buf *in, const struct frame *f);

/* Returns how many bytes the frame at the front still lacks, 0 = none or not known. Reserving them
 * at once saves copying a large frame as the buffer grows. */
size_t frame_missing(const struct buf *in);

/* A position in a stream of frames that is only observed. Zeroed: at the beginning. */
struct frame_walk {
        unsigned char length[4];
        size_t known; /* bytes of @length */
        size_t left;  /* bytes left of the frame once the length is known */
};

/* Advances by at most @len bytes at @p, not beyond the end of a frame; returns by how many. */
size_t frame_walk(struct frame_walk *w, const void *p, size_t len);
/* True after the end of a frame, or at the beginning. */
bool frame_walk_between(const struct frame_walk *w);
