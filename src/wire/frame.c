/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of a frame is written by frame_end(), when the body is there; frame_end_before()
 * counts bytes that follow from another place. frame_walk() finds the ends of frames in bytes that
 * are passed on unread.
 */
#include "wire/frame.h"

#include <errno.h>

#include "wire/codec.h"

size_t frame_begin(struct buf *b, uint8_t type)
{
        size_t mark = buf_len(b);

        put_u32(b, 0);
        put_u8(b, type);
        return mark;
}

/* After a failed allocation the mark may be beyond the bytes; the failure stays in the buffer. */
void frame_end_before(struct buf *b, size_t mark, size_t more)
{
        unsigned char *at;
        size_t len;

        if (buf_failed(b))
                return;
        /* The buffer may have moved since frame_begin(): a mark counts from the first byte not
         * consumed. */
        at = b->mem + b->start + mark;
        len = buf_len(b) - mark - 4 + more;
        for (int i = 0; i < 4; i++)
                at[i] = (unsigned char)(len >> (8 * i));
}

void frame_end(struct buf *b, size_t mark)
{
        frame_end_before(b, mark, 0);
}

int frame_peek(const struct buf *in, struct frame *ret_frame, struct error *err)
{
        struct reader r = READER_INIT(buf_data(in), buf_len(in));
        uint32_t len;

        if (buf_len(in) < FRAME_HEADER)
                return 0;
        len = take_u32(&r);
        /* The type is part of the length, so 0 is impossible. No resynchronization follows: the
         * ends of frames are lost. */
        if (len < 1 || len > FRAME_MAX)
                return err_set(err, EPROTO, "invalid frame length %u", len);
        if (buf_len(in) - 4 < len)
                return 0;
        ret_frame->type = take_u8(&r);
        ret_frame->body = r.p;
        ret_frame->len = len - 1;
        return 1;
}

size_t frame_missing(const struct buf *in)
{
        struct reader r = READER_INIT(buf_data(in), buf_len(in));
        uint32_t len = take_u32(&r);

        return len > FRAME_MAX || len <= r.left ? 0 : len - r.left;
}

/* The four bytes of the length may come in pieces. The length is not checked: only the last
 * receiver of the bytes judges frames. */
size_t frame_walk(struct frame_walk *w, const void *p, size_t len)
{
        const unsigned char *bytes = p;
        size_t at = 0, more;

        while (w->known < sizeof(w->length) && at < len) {
                w->length[w->known++] = bytes[at++];
                if (w->known == sizeof(w->length))
                        w->left = take_u32(&(struct reader)READER_INIT(w->length, w->known));
        }
        more = MIN(w->left, len - at);
        w->left -= more;
        if (w->known == sizeof(w->length) && !w->left)
                w->known = 0;
        return at + more;
}

bool frame_walk_between(const struct frame_walk *w)
{
        return !w->known;
}

void frame_consume(struct buf *in, const struct frame *f)
{
        buf_consume(in, FRAME_HEADER + f->len);
}
