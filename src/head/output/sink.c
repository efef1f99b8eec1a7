/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two batches: @writing belongs to the thread while busy is set, bytes gather in @next meanwhile.
 * When a write returns, the loop consumes the written part and starts the next write. When a batch
 * is written to the end, each receipt in it is reported to the owner; these callbacks may put more
 * bytes, into @next.
 *
 * After the first error, or sink_abandon(), everything is dropped and counted, and still reported
 * as written, so the flow control of the owner goes on.
 *
 * A write to a reader that does not read would hold its thread for ever. sink_abandon() interrupts
 * it with INTERRUPT, whose handler does nothing: write() then returns how many bytes it has
 * written.
 */
#include "head/output/sink.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum {
        ROOM_MS = 200,   /* a wait for room in a non-blocking pipe or terminal */
        KEEP = 1 << 20,  /* memory for reuse, only in sinks of the terminal */
        PIECE = 1 << 20, /* bytes of a single write, at most */
        INTERRUPT = SIGURG,
};

/* Bytes put with the same tag one after another; reported when their batch is written. */
struct sink_receipt {
        void *tag;
        size_t n;   /* reported */
        size_t len; /* bytes of the batch, which may include prefixes */
};

/* Bytes, and the receipts due when all are written. */
struct sink_batch {
        struct buf bytes;
        struct sink_receipt *receipts;
        size_t n, cap;
        size_t written; /* of @bytes */
};

/* The thread that is in write(), for sink_abandon(). */
struct sink_writer {
        pthread_mutex_t mutex;
        pthread_t thread;
        bool writes;
};

struct sink {
        struct thread_pool *pool;
        struct thread_pool_work work;
        ssize_t result; /* of the last write: bytes, or -errno */
        int fd, error;
        bool own, busy, mid_line, took; /* @own: @fd is closed at the end; @took: since the last
                                           call of sink_took() */
        size_t dropped, mark;           /* where sink_begin() found the end */
        struct sink_batch writing, next;
        struct sink_batch spare; /* empty; the memory of the next batch */
        struct sink_writer writer;
        struct sink_ops ops;
        void *ctx;
};

struct sink *sink_create(struct thread_pool *pool, int fd, bool own, struct sink_ops ops, void *ctx)
{
        struct sink *s = xcalloc(1, sizeof(*s));

        *s = (struct sink){ .pool = pool, .fd = fd, .own = own, .ops = ops, .ctx = ctx };
        pthread_mutex_init(&s->writer.mutex, NULL);
        return s;
}

/* Puts of one tag in a row share a receipt, so many short lines are one report. */
static void add_receipt(struct sink_batch *b, void *tag, size_t n, size_t len)
{
        if (b->n && b->receipts[b->n - 1].tag == tag) {
                b->receipts[b->n - 1].n += n;
                b->receipts[b->n - 1].len += len;
                return;
        }
        b->receipts = xgrow(b->receipts, b->n, &b->cap, sizeof(*b->receipts));
        b->receipts[b->n++] = (struct sink_receipt){ tag, n, len };
}

static void finish_batch(struct sink_batch *b)
{
        buf_finish(&b->bytes);
        free(b->receipts);
        *b = (struct sink_batch){ 0 };
}

static size_t batch_rest(const struct sink_batch *b)
{
        return buf_len(&b->bytes) - b->written;
}

/* Returns how many bytes are dropped of the receipt at the offset @at of a batch. */
static size_t count_dropped(const struct sink *s, const struct sink_batch *b,
                            const struct sink_receipt *r, size_t at)
{
        size_t written;

        if (at + r->len <= b->written)
                return 0;
        if (at >= b->written)
                return r->n;
        written = b->written - at;
        if (s->ops.payload)
                written = s->ops.payload(s->ctx, r->tag, buf_data(&b->bytes) + at, written);
        return r->n - MIN(r->n, written);
}

/* Reports all receipts of the finished batch. @writing is emptied first, because a callback may put
 * bytes. */
static void report_batch(struct sink *s)
{
        struct sink_batch done = s->writing;
        size_t at = 0;

        s->writing = (struct sink_batch){ 0 };
        for (size_t i = 0; i < done.n; i++) {
                const struct sink_receipt *r = &done.receipts[i];

                s->ops.written(s->ctx, r->tag, r->n, count_dropped(s, &done, r, at));
                at += r->len;
        }
        if (s->own || s->spare.receipts || done.bytes.cap > KEEP) {
                finish_batch(&done);
                return;
        }
        /* The memory is kept: fresh pages for each batch would cost more than the bytes. */
        buf_clear(&done.bytes);
        done.n = done.written = 0;
        s->spare = done;
}

/* In a thread. Between the two calls sink_abandon() may send a signal to the thread, so the thread
 * of another sink's write is never hit. */
static void set_writer(struct sink_writer *w, bool writes)
{
        pthread_mutex_lock(&w->mutex);
        w->thread = pthread_self();
        w->writes = writes;
        pthread_mutex_unlock(&w->mutex);
}

/* In a thread. */
static void write_piece(struct thread_pool_work *w)
{
        struct sink *s = container_of(w, struct sink, work);
        sigset_t interrupt;
        ssize_t r;

        sigemptyset(&interrupt);
        sigaddset(&interrupt, INTERRUPT);
        /* The pool's threads block all signals. */
        pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
        set_writer(&s->writer, true);
        r = write(s->fd, buf_data(&s->writing.bytes) + s->writing.written,
                  MIN(batch_rest(&s->writing), (size_t)PIECE));
        s->result = r < 0 ? -errno : r;
        if (s->result == -EAGAIN)
                poll(&(struct pollfd){ .fd = s->fd, .events = POLLOUT }, 1, ROOM_MS);
        set_writer(&s->writer, false);
}

/* Ends the batch, of which a rest may not be written. */
static void end_batch(struct sink *s)
{
        if (batch_rest(&s->writing)) {
                s->dropped += batch_rest(&s->writing);
                s->mid_line = true; /* as far as is known */
        }
        report_batch(s);
}

static void write_next_batch(struct sink *s);

/* In the loop, after a write. @status: the work was cancelled before a thread took it, so nothing
 * was written. */
static void on_piece_written(struct thread_pool_work *w, int status)
{
        struct sink *s = container_of(w, struct sink, work);
        ssize_t r = status ? 0 : s->result;

        s->busy = false;
        /* EAGAIN: another process has made the shared open file non-blocking. The thread has waited
         * for room, and the write is tried again. */
        if (r == -EINTR || r == -EAGAIN)
                r = 0;
        if (r < 0 && !s->error) {
                s->error = (int)-r;
                s->ops.broken(s->ctx, s, s->error);
        }
        s->writing.written += r > 0 ? (size_t)r : 0;
        s->took |= r > 0;
        if (s->error || !batch_rest(&s->writing))
                end_batch(s);
        write_next_batch(s);
}

/* Writes the rest of the present batch, else begins the next. */
static void write_next_batch(struct sink *s)
{
        while (!s->busy) {
                if (!batch_rest(&s->writing)) {
                        if (!s->next.n)
                                return;
                        s->writing = s->next;
                        s->next = s->spare;
                        s->spare = (struct sink_batch){ 0 };
                }
                /* Receipts without bytes (folded lines), or a broken sink: nothing is to be
                 * written. */
                if (s->error || !batch_rest(&s->writing)) {
                        end_batch(s);
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
                s->ops.written(s->ctx, tag, n_tag, n_tag);
                return;
        }
        add_receipt(&s->next, tag, n_tag, buf_len(b) - s->mark);
        write_next_batch(s);
}

void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag)
{
        buf_append(sink_begin(s), data, n);
        sink_end(s, tag, n_tag);
}

void sink_erase_lines(struct sink *s, size_t rows)
{
        struct buf *to = sink_begin(s);

        buf_appends(to, "\r\033[K");
        while (rows-- > 1)
                buf_appends(to, "\033[A\033[K");
        sink_end(s, NULL, 0);
        s->mid_line = false;
}

void sink_end_line(struct sink *s)
{
        s->mid_line = false;
}

bool sink_is_mid_line(const struct sink *s)
{
        return s->mid_line;
}

size_t sink_pending(const struct sink *s)
{
        return batch_rest(&s->writing) + buf_len(&s->next.bytes);
}

bool sink_took(struct sink *s)
{
        bool took = s->took;

        s->took = false;
        return took;
}

size_t sink_dropped(const struct sink *s)
{
        return s->dropped;
}

int sink_error(const struct sink *s)
{
        return s->error;
}

static void on_interrupt(int signo UNUSED)
{
}

void sink_abandon(struct sink *s)
{
        const struct sigaction interrupt = { .sa_handler = on_interrupt }; /* no SA_RESTART */

        /* As after an error: what follows is dropped, and broken() is not called. */
        if (!s->error)
                s->error = ECANCELED;
        if (!s->busy)
                return;
        thread_pool_cancel(s->pool, &s->work);
        sigaction(INTERRUPT, &interrupt, NULL);
        pthread_mutex_lock(&s->writer.mutex);
        if (s->writer.writes)
                pthread_kill(s->writer.thread, INTERRUPT);
        pthread_mutex_unlock(&s->writer.mutex);
}

void sink_destroy(struct sink *s)
{
        if (!s)
                return;
        pthread_mutex_destroy(&s->writer.mutex);
        finish_batch(&s->writing);
        finish_batch(&s->next);
        finish_batch(&s->spare);
        if (s->own)
                fd_close(s->fd);
        free(s);
}
