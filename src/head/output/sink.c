/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two batches: @writing belongs to the thread while busy is set, bytes gather in @next meanwhile.
 * When a write returns, the loop consumes the written part and starts the next write. When a batch
 * is written to the end, each receipt in it is reported to the owner; these callbacks may put more
 * bytes, into @next.
 *
 * After the first error everything is dropped and counted, and still reported as written, so the
 * flow control of the owner goes on.
 */
#include "head/output/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        KEEP = 1 << 20,  /* memory for reuse, only in sinks of the terminal */
        PIECE = 1 << 20, /* bytes of a single write, at most */
};

struct sink_receipt {
        void *tag;
        size_t n;
};

/* Bytes, and the receipts due when all are written. */
struct sink_batch {
        struct buf bytes;
        struct sink_receipt *receipts;
        size_t n, cap;
};

struct sink {
        struct thread_pool *pool;
        struct thread_pool_work work;
        ssize_t result; /* of the last write: bytes, or -errno */
        int fd, error;
        bool own, busy, mid_line;
        size_t dropped, mark; /* where sink_begin() found the end */
        struct sink_batch writing, next;
        struct sink_batch spare; /* empty; the memory of the next batch */
        struct sink_ops ops;
        void *ctx;
};

struct sink *sink_create(struct thread_pool *pool, int fd, bool own, struct sink_ops ops, void *ctx)
{
        struct sink *s = xcalloc(1, sizeof(*s));

        *s = (struct sink){ .pool = pool, .fd = fd, .own = own, .ops = ops, .ctx = ctx };
        return s;
}

static void add_receipt(struct sink_batch *b, void *tag, size_t n)
{
        if (b->n && b->receipts[b->n - 1].tag == tag) {
                b->receipts[b->n - 1].n += n;
                return;
        }
        b->receipts = xgrow(b->receipts, b->n, &b->cap, sizeof(*b->receipts));
        b->receipts[b->n++] = (struct sink_receipt){ tag, n };
}

static void finish_batch(struct sink_batch *b)
{
        buf_finish(&b->bytes);
        free(b->receipts);
        *b = (struct sink_batch){ 0 };
}

static void report_batch(struct sink *s)
{
        struct sink_batch done = s->writing;

        s->writing = (struct sink_batch){ 0 };
        for (size_t i = 0; i < done.n; i++)
                s->ops.written(s->ctx, done.receipts[i].tag, done.receipts[i].n);
        if (s->own || s->spare.receipts || done.bytes.cap > KEEP) {
                finish_batch(&done);
                return;
        }
        /* The memory is kept: fresh pages for each batch would cost more than the bytes. */
        buf_clear(&done.bytes);
        done.n = 0;
        s->spare = done;
}

static void write_next_batch(struct sink *s);

/* In a thread. */
static void write_piece(struct thread_pool_work *w)
{
        struct sink *s = container_of(w, struct sink, work);
        ssize_t r = write(s->fd, buf_data(&s->writing.bytes),
                          MIN(buf_len(&s->writing.bytes), (size_t)PIECE));

        s->result = r < 0 ? -errno : r;
}

static void on_piece_written(struct thread_pool_work *w, int status UNUSED)
{
        struct sink *s = container_of(w, struct sink, work);
        ssize_t r = s->result;

        s->busy = false;
        if (r == -EINTR || r == -EAGAIN)
                r = 0;
        if (r < 0) {
                s->error = (int)-r;
                s->dropped += buf_len(&s->writing.bytes);
                buf_clear(&s->writing.bytes);
                s->ops.broken(s->ctx, s, s->error);
        } else {
                buf_consume(&s->writing.bytes, (size_t)r);
        }
        if (!buf_len(&s->writing.bytes))
                report_batch(s);
        write_next_batch(s);
}

/* Writes the rest of the present batch, else begins the next. */
static void write_next_batch(struct sink *s)
{
        while (!s->busy) {
                if (!buf_len(&s->writing.bytes)) {
                        if (!s->next.n)
                                return;
                        s->writing = s->next;
                        s->next = s->spare;
                        s->spare = (struct sink_batch){ 0 };
                }
                if (s->error || !buf_len(&s->writing.bytes)) {
                        s->dropped += buf_len(&s->writing.bytes);
                        buf_clear(&s->writing.bytes);
                        report_batch(s);
                        continue;
                }
                s->busy = true;
                s->work = (struct thread_pool_work){ .run = write_piece, .done = on_piece_written };
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
        add_receipt(&s->next, tag, n_tag);
        write_next_batch(s);
}

void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag)
{
        buf_append(sink_begin(s), data, n);
        sink_end(s, tag, n_tag);
}

void sink_erase_line(struct sink *s)
{
        sink_put(s, "\r\033[K", 4, NULL, 0);
        s->mid_line = false;
}

bool sink_is_mid_line(const struct sink *s)
{
        return s->mid_line;
}

size_t sink_pending(const struct sink *s)
{
        return buf_len(&s->writing.bytes) + buf_len(&s->next.bytes);
}

size_t sink_dropped(const struct sink *s)
{
        return s->dropped;
}

void sink_destroy(struct sink *s)
{
        if (!s)
                return;
        finish_batch(&s->writing);
        finish_batch(&s->next);
        finish_batch(&s->spare);
        if (s->own)
                fd_close(s->fd);
        free(s);
}
