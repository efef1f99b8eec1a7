/* SPDX-License-Identifier: Apache-2.0 */
#include "head/sink.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strv.h"

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
        uv_loop_t *loop;
        uv_fs_t req;
        int fd, error;
        bool own, busy;
        size_t dropped;
        struct batch flying, next;
        struct sink_ops ops;
        void *ctx;
};

struct sink *sink_create(uv_loop_t *loop, int fd, bool own, struct sink_ops ops, void *ctx)
{
        struct sink *s = xcalloc(1, sizeof(*s));

        s->loop = loop;
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

/* The callbacks may put more bytes: they land in @next. */
static void batch_told(struct sink *s)
{
        struct batch done = s->flying;

        s->flying = (struct batch){ 0 };
        for (size_t i = 0; i < done.n; i++)
                s->ops.written(s->ctx, done.receipts[i].tag, done.receipts[i].n);
        buf_finish(&done.bytes);
        free(done.receipts);
}

static void start(struct sink *s);

static void finished(uv_fs_t *req)
{
        struct sink *s = req->data;
        ssize_t r = req->result;

        uv_fs_req_cleanup(req);
        s->busy = false;
        if (r == UV_EINTR || r == UV_EAGAIN)
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
        uv_buf_t piece;

        while (!s->busy) {
                if (!buf_len(&s->flying.bytes)) {
                        if (!s->next.n)
                                return;
                        s->flying = s->next;
                        s->next = (struct batch){ 0 };
                }
                if (s->error || !buf_len(&s->flying.bytes)) {
                        s->dropped += buf_len(&s->flying.bytes);
                        buf_clear(&s->flying.bytes);
                        batch_told(s);
                        continue;
                }
                piece = uv_buf_init((char *)(s->flying.bytes.mem + s->flying.bytes.start),
                                    (unsigned)MIN(buf_len(&s->flying.bytes), (size_t)(1 << 20)));
                s->req.data = s;
                s->busy = true;
                uv_fs_write(s->loop, &s->req, s->fd, &piece, 1, -1, finished);
        }
}

void sink_put(struct sink *s, const void *data, size_t n, void *tag, size_t n_tag)
{
        if (s->error) {
                s->dropped += n;
                s->ops.written(s->ctx, tag, n_tag);
                return;
        }
        buf_append(&s->next.bytes, data, n);
        batch_add(&s->next, tag, n_tag);
        start(s);
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
        buf_finish(&s->flying.bytes);
        buf_finish(&s->next.bytes);
        free(s->flying.receipts);
        free(s->next.receipts);
        if (s->own)
                fd_close(s->fd);
        free(s);
}
