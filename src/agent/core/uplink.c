/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_readable() reads into @in and hands over whole frames. Frames to the head only gather in @out;
 * on_prepare(), right before the loop sleeps, calls ops.turn() and writes the gathered bytes.
 * The rest is written when the pipe is writable. Above FULL waiting bytes uplink_full() is true,
 * and drained() is called once below DRAINED.
 *
 * uplink_lose() is the one way to lose the head: both polls stop, lost() is called once, and a last
 * write takes what the pipe takes.
 */
#include "agent/core/uplink.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
        FULL = 1 << 20,       /* waiting bytes above which streams pause */
        DRAINED = 256 << 10,  /* ... and below which streams go on */
        READ_SIZE = 64 << 10, /* asked for in one read */
        KEEP = 128 << 10,     /* memory kept by an empty buffer */
};

/* Writes what the pipe takes. The head may still read: sshd closes the agent's input when the
 * command started by sshd has ended. */
static void write_last_bytes(struct uplink *u)
{
        ssize_t n;

        while (buf_len(&u->out)) {
                n = write(u->out_fd, buf_data(&u->out), buf_len(&u->out));
                if (n >= 0)
                        buf_consume(&u->out, (size_t)n);
                else if (errno != EINTR)
                        break;
        }
        buf_clear(&u->out);
}

void uplink_lose(struct uplink *u, const char *why)
{
        if (u->lost)
                return;
        u->lost = true;
        uv_poll_stop(&u->in_poll);
        uv_poll_stop(&u->out_poll);
        u->ops.lost(u->ctx, why);
        write_last_bytes(u);
}

static void trim_buffer(struct buf *b)
{
        if (!buf_len(b) && b->cap > KEEP)
                buf_finish(b);
}

/* Calls ops.frame for every whole frame. */
static void take_uplink_frames(struct uplink *u)
{
        struct error err;
        struct frame f;
        int r;

        while (!u->lost && (r = frame_peek(&u->in, &f, &err)) != 0) {
                if (r < 0) {
                        uplink_lose(u, err.text);
                        return;
                }
                u->ops.frame(u->ctx, &f);
                frame_consume(&u->in, &f);
        }
        trim_buffer(&u->in);
}

static void on_readable(uv_poll_t *poll, int status, int events UNUSED)
{
        struct uplink *u = poll->data;
        size_t want = MAX((size_t)READ_SIZE, frame_missing(&u->in));
        void *to = buf_reserve(&u->in, want);
        ssize_t n;

        if (!to) {
                uplink_lose(u, "out of memory");
                return;
        }
        n = read(u->in_fd, to, want);
        if (n > 0) {
                buf_advance(&u->in, (size_t)n);
                take_uplink_frames(u);
        } else if (!n) {
                uplink_lose(u, "the head closed the connection");
        } else if (errno != EINTR && errno != EAGAIN) {
                uplink_lose(u, strerror(errno));
        } else if (status < 0) {
                uplink_lose(u, uv_strerror(status));
        }
}

static void on_writable(uv_poll_t *poll, int status, int events);

/* Writes as much as possible and polls for the rest. */
static void flush_uplink(struct uplink *u)
{
        ssize_t n = 0;

        if (!buf_len(&u->out))
                return;
        while (!u->lost && buf_len(&u->out)) {
                n = write(u->out_fd, buf_data(&u->out), buf_len(&u->out));
                if (n >= 0)
                        buf_consume(&u->out, (size_t)n);
                else if (errno == EAGAIN)
                        break;
                else if (errno != EINTR)
                        uplink_lose(u, strerror(errno));
        }
        if (u->unsent)
                *u->unsent = buf_len(&u->out);
        if (!u->lost && !buf_len(&u->out))
                u->ops.sent(u->ctx);
        if (u->lost || !u->writing == !buf_len(&u->out))
                return;
        u->writing = buf_len(&u->out);
        if (u->writing)
                uv_poll_start(&u->out_poll, UV_WRITABLE, on_writable);
        else
                uv_poll_stop(&u->out_poll);
}

static void report_drained(struct uplink *u)
{
        trim_buffer(&u->out);
        if (u->full && buf_len(&u->out) < DRAINED) {
                u->full = false;
                u->ops.drained(u->ctx);
        }
}

static void on_writable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct uplink *u = poll->data;

        flush_uplink(u);
        report_drained(u);
}

/* Runs before the loop sleeps: whatever the callbacks of this turn have written goes out at once.
 */
static void on_prepare(uv_prepare_t *handle)
{
        struct uplink *u = handle->data;
        bool was_lost;

        u->ops.turn(u->ctx);
        was_lost = u->lost;
        if (buf_failed(&u->out))
                uplink_lose(u, "out of memory");
        if (!u->lost && !u->writing && buf_len(&u->out))
                flush_uplink(u);
        if (u->lost)
                buf_clear(&u->out);
        report_drained(u);
        /* A loss found by writing: no other event may wake the loop. */
        if (u->lost && !was_lost)
                u->ops.turn(u->ctx);
}

int uplink_open(struct uplink *u, uv_loop_t *loop, int in_fd, int out_fd, struct uplink_ops ops,
                void *ctx, struct error *err)
{
        int r;

        *u = (struct uplink){ .ops = ops, .ctx = ctx, .in_fd = in_fd, .out_fd = out_fd };
        r = uv_poll_init(loop, &u->in_poll, in_fd);
        if (r < 0)
                return err_set(err, -r, "standard input: %s", uv_strerror(r));
        r = uv_poll_init(loop, &u->out_poll, out_fd);
        if (r < 0) {
                uv_close((uv_handle_t *)&u->in_poll, NULL);
                return err_set(err, -r, "standard output: %s", uv_strerror(r));
        }
        u->in_poll.data = u->out_poll.data = u->flush.data = u;
        uv_prepare_init(loop, &u->flush);
        uv_prepare_start(&u->flush, on_prepare);
        uv_poll_start(&u->in_poll, UV_READABLE, on_readable);
        return 0;
}

void uplink_close(struct uplink *u)
{
        uv_close((uv_handle_t *)&u->in_poll, NULL);
        uv_close((uv_handle_t *)&u->out_poll, NULL);
        uv_close((uv_handle_t *)&u->flush, NULL);
}

void uplink_finish(struct uplink *u)
{
        buf_finish(&u->in);
        buf_finish(&u->out);
}

struct buf *uplink_out(struct uplink *u)
{
        return &u->out;
}

bool uplink_full(struct uplink *u)
{
        /* Remembered, so that drained() is called for every stream that paused. */
        if (buf_len(&u->out) >= FULL)
                u->full = true;
        return u->full;
}

bool uplink_readable(const struct uplink *u)
{
        struct pollfd p = { .fd = u->in_fd, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}

bool uplink_empty(const struct uplink *u)
{
        return u->lost || !buf_len(&u->out);
}
