/* SPDX-License-Identifier: Apache-2.0 */
#include "head/output/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        KEEP = 1 << 20,  /* memory that is used again, of a sink that is not one of thousands */
        PIECE = 1 << 20, /* written at once, at most */
};

struct receipt {
        void *tag;
        size_t n;
};

/* One batch of bytes and who is told about them. */
struct batch {
        struct buf bytes;
        struct receipt *receipts;
        size_t n, cap;
};

struct sink {
        struct thread_pool *pool;
        struct thread_pool_work work;
        ssize_t result; /* of the last write: bytes, or -errno */
        int fd, error;
        bool own, busy, mid_line;
        size_t dropped, mark; /* where sink_begin() found the end */
        struct batch flying, next;
        struct batch spare; /* empty; its memory is the next batch's */
        struct sink_ops ops;
        void *ctx;
};

struct sink *sink_create(struct thread_pool *pool, int fd, bool own, struct sink_ops ops, void *ctx)
{
        struct sink *s = xcalloc(1, sizeof(*s));

        s->pool = pool;
        s->fd = fd;
        s->own = own;
        s->ops = ops;
        s->ctx = ctx;
        return s;
}

static void batch_add(struct batch *b, void *tag, size_t n)
{
        if (b->n && b->receipts[b->n - 1].tag == tag) {
                b->receipts[b->n - 1].n += n;
                return;
        }
        if (b->n == b->cap) {
                b->cap = MAX(b->cap * 2, (size_t)16);
                b->receipts = xrealloc(b->receipts, b->cap, sizeof(*b->receipts));
        }
        b->receipts[b->n++] = (struct receipt){ tag, n };
}

static void batch_finish(struct batch *b)
{
        buf_finish(&b->bytes);
        free(b->receipts);
        *b = (struct batch){ 0 };
}

/* Fresh pages for each batch would cost more than the bytes in them. */
static void batch_recycle(struct sink *s, struct batch *b)
{
        if (s->own || s->spare.receipts || b->bytes.cap > KEEP) {
                batch_finish(b);
                return;
        }
        buf_clear(&b->bytes);
        b->n = 0;
        s->spare = *b;
}

/* The callbacks may put more bytes: they land in @next. */
static void batch_told(struct sink *s)
{
        struct batch done = s->flying;

        s->flying = (struct batch){ 0 };
        for (size_t i = 0; i < done.n; i++)
                s->ops.written(s->ctx, done.receipts[i].tag, done.receipts[i].n);
        batch_recycle(s, &done);
}

static void start(struct sink *s);

/* In a thread: the flying batch is not touched meanwhile. */
static void write_piece(struct thread_pool_work *w)
{
        struct sink *s = container_of(w, struct sink, work);
        ssize_t r = write(s->fd, buf_data(&s->flying.bytes),
                          MIN(buf_len(&s->flying.bytes), (size_t)PIECE));

        s->result = r < 0 ? -errno : r;
}

static void piece_written(struct thread_pool_work *w, int status UNUSED)
{
        struct sink *s = container_of(w, struct sink, work);
        ssize_t r = s->result;

        s->busy = false;
        if (r == -EINTR || r == -EAGAIN)
                r = 0;
        if (r < 0) {
                s->error = (int)-r;
                s->dropped += buf_len(&s->flying.bytes);
                buf_clear(&s->flying.bytes);
                s->ops.broken(s->ctx, s, s->error);
        } else {
                buf_consume(&s->flying.bytes, (size_t)r);
        }
        if (!buf_len(&s->flying.bytes))
                batch_told(s);
        start(s);
}

/* Writes what is left of the flying batch, else the next one. */
static void start(struct sink *s)
{
        while (!s->busy) {
                if (!buf_len(&s->flying.bytes)) {
                        if (!s->next.n)
                                return;
                        s->flying = s->next;
                        s->next = s->spare;
                        s->spare = (struct batch){ 0 };
                }
                if (s->error || !buf_len(&s->flying.bytes)) {
                        s->dropped += buf_len(&s->flying.bytes);
                        buf_clear(&s->flying.bytes);
                        batch_told(s);
                        continue;
                }
                s->busy = true;
                s->work = (struct thread_pool_work){ .run = write_piece, .done = piece_written };
                thread_pool_run(s->pool, &s->work);
        }
}

struct buf *sink_begin(struct sink *s)
{
        s->mark = buf_len(&s->next.bytes);
        return &s->next.bytes;
}

void sink_end(struct sink *s, void *tag, size_t n_tag)
{
        const struct buf *b = &s->next.bytes;

        if (buf_len(b) > s->mark)
                s->mid_line = b->mem[b->end - 1] != '\n';
        if (s->error) {
                s->dropped += buf_len(&s->next.bytes) - s->mark;
                buf_truncate(&s->next.bytes, s->mark);
                s->ops.written(s->ctx, tag, n_tag);
                return;
        }
        batch_add(&s->next, tag, n_tag);
        start(s);
}

void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag)
{
        buf_append(sink_begin(s), data, n);
        sink_end(s, tag, n_tag);
}

bool sink_is_mid_line(const struct sink *s)
{
        return s->mid_line;
}

size_t sink_pending(const struct sink *s)
{
        return buf_len(&s->flying.bytes) + buf_len(&s->next.bytes);
}

size_t sink_dropped(const struct sink *s)
{
        return s->dropped;
}

void sink_destroy(struct sink *s)
{
        if (!s)
                return;
        batch_finish(&s->flying);
        batch_finish(&s->next);
        batch_finish(&s->spare);
        if (s->own)
                fd_close(s->fd);
        free(s);
}
