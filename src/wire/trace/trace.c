/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table fields says which numbers follow the kind of a record, for writer and reader alike. A
 * reader stops at the first malformed byte: lengths are unknown from there on.
 *
 * A varint of a time is the difference to the record before. Numbers of records of a rank follow
 * in the order rank, number, more, data.
 */
#include "wire/trace/trace.h"

#include <errno.h>

#include "wire/msg.h"

enum { HAS_NUMBER = 1, HAS_MORE = 2, HAS_DATA = 4, OF_NODE = 8 }; /* OF_NODE: no rank */

static const uint8_t fields[TRACE_KINDS] = {
        [TRACE_STEP] = HAS_NUMBER,
        [TRACE_OP] = HAS_NUMBER | HAS_MORE | HAS_DATA,
        [TRACE_OUT] = HAS_NUMBER | HAS_MORE,
        [TRACE_EXIT] = HAS_NUMBER,
        [TRACE_GAP] = HAS_NUMBER,
        [TRACE_SAMPLE] = HAS_DATA | OF_NODE,
};

void trace_begin(struct buf *b, uint64_t us)
{
        put_u64(b, us);
}

void trace_put(struct buf *b, uint64_t before, const struct trace_record *r)
{
        uint8_t has = fields[r->kind];

        put_u8(b, r->kind);
        /* Records of different sources may come out of order; a negative difference has no
         * varint. */
        put_varint(b, r->us - MIN(before, r->us));
        if (!(has & OF_NODE))
                put_varint(b, r->rank);
        if (has & HAS_NUMBER)
                put_varint(b, r->number);
        if (has & HAS_MORE)
                put_varint(b, r->more);
        if (has & HAS_DATA) {
                size_t len = MIN(r->len, (size_t)TRACE_DATA_MAX);

                put_varint(b, len);
                buf_append(b, r->data, len);
        }
}

bool trace_open(struct trace_reader *t, const void *piece, size_t len)
{
        t->in = (struct reader)READER_INIT(piece, len);
        t->us = take_u64(&t->in);
        return !t->in.failed;
}

bool trace_next(struct trace_reader *t, struct trace_record *ret)
{
        struct reader *in = &t->in;
        uint64_t later, rank = 0, len;
        uint8_t has;

        if (in->failed || !in->left)
                return false;
        *ret = (struct trace_record){ .kind = take_u8(in) };
        /* 0 = an unknown kind, which fails below. */
        has = ret->kind < TRACE_KINDS ? fields[ret->kind] : 0;
        later = take_varint(in);
        if (later > UINT64_MAX - t->us)
                in->failed = true;
        t->us += later;
        ret->us = t->us;
        if (!(has & OF_NODE))
                rank = take_varint(in);
        if (has & HAS_NUMBER)
                ret->number = take_varint(in);
        if (has & HAS_MORE)
                ret->more = take_varint(in);
        if (has & HAS_DATA) {
                len = take_varint(in);
                if (len > TRACE_DATA_MAX)
                        in->failed = true;
                ret->len = (size_t)len;
                ret->data = take_raw(in, (size_t)len);
        }
        ret->rank = (uint32_t)rank;
        if (!has || rank > UINT32_MAX)
                in->failed = true;
        return !in->failed;
}

void recorded_encode(struct buf *b, const struct recorded *m)
{
        size_t mark = frame_begin(b, MSG_RECORDED);

        put_u8(b, m->last);
        buf_append(b, m->piece, m->len);
        frame_end(b, mark);
}

int recorded_decode(struct recorded *m, const struct frame *f, struct error *err)
{
        struct reader in = READER_INIT(f->body, f->len);
        uint8_t last = take_u8(&in);

        *m = (struct recorded){ .last = last };
        m->piece = take_rest(&in, &m->len);
        if (in.failed || last > 1 || m->len > TRACE_PIECE)
                return err_set(err, EPROTO, "malformed RECORDED message");
        return 0;
}
