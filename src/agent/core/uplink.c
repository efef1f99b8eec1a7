/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_readable() reads into @in and hands over whole frames. Frames to the head only gather in @out;
 * on_prepare(), right before the loop sleeps, calls ops.turn() and writes the gathered bytes. The
 * rest follows when the pipe is writable. Above FULL waiting bytes uplink_full() is true, and
 * drained() is called once below DRAINED.
 *
 * uplink_lose() is the only way to lose the head: both polls stop, lost() is called once, and as
 * many waiting bytes as possible are written.
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

/* Writes as much as the pipe takes. 0, or the negative errno of the last write. */
static int write_uplink(struct uplink *u)
{
        while (buf_len(&u->out)) {
                ssize_t n = write(u->out_fd, buf_data(&u->out), buf_len(&u->out));

                if (n >= 0)
                        buf_consume(&u->out, (size_t)n);
                else if (errno != EINTR)
                        return -errno;
        }
        return 0;
}

void uplink_lose(struct uplink *u, const char *why)
{
        if (u->lost)
                return;
        u->lost = true;
        u->writing = false;
        uv_poll_stop(&u->in_poll);
        uv_poll_stop(&u->out_poll);
        u->ops.lost(u->ctx, why);
        /* The head may still read: sshd closes the agent's input when the command started by sshd
         * has ended. */
        write_uplink(u);
        buf_clear(&u->out);
}

/* Reads frames of the head. Every failure is the loss of the head, after which nothing is read. */
static void on_readable(uv_poll_t *poll, int status, int events UNUSED)
{
        struct uplink *u = poll->data;
        /* A long frame needs fewer reads with room for all of it. */
        size_t want = MAX((size_t)READ_SIZE, frame_missing(&u->in));
        void *to = buf_reserve(&u->in, want);
        ssize_t n = to ? read(u->in_fd, to, want) : 0;
        struct error err;
        struct frame f;
        int r = 0;

        if (!to)
                uplink_lose(u, "out of memory");
        else if (!n)
                uplink_lose(u, "the head closed the connection");
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
                uplink_lose(u, strerror(errno));
        else if (n < 0 && status < 0)
                uplink_lose(u, uv_strerror(status));
        if (n <= 0)
                return;
        buf_advance(&u->in, (size_t)n);
        while (!u->lost && (r = frame_peek(&u->in, &f, &err)) > 0) {
                u->ops.frame(u->ctx, &f);
                frame_consume(&u->in, &f);
        }
        if (r < 0)
                uplink_lose(u, err.text);
        /* The memory of a long message must not stay for the life of the job. */
        if (!buf_len(&u->in) && u->in.cap > KEEP)
                buf_finish(&u->in);
}

static void on_writable(uv_poll_t *poll, int status, int events);

/* Writes as much as possible, polls for the rest, and reports how far the buffer is empty. */
static void flush_uplink(struct uplink *u)
{
        int r = u->lost ? 0 : write_uplink(u);

        if (r < 0 && r != -EAGAIN)
                uplink_lose(u, strerror(-r));
        if (u->lost)
                buf_clear(&u->out);
        /* A full write is at the end of a frame, as only whole frames are appended. */
        else if (u->unsent)
                *u->unsent = buf_len(&u->out);
        if (!u->lost && u->writing != (buf_len(&u->out) > 0)) {
                u->writing = !u->writing;
                if (u->writing)
                        uv_poll_start(&u->out_poll, UV_WRITABLE, on_writable);
                else
                        uv_poll_stop(&u->out_poll);
        }
        if (!buf_len(&u->out) && u->out.cap > KEEP)
                buf_finish(&u->out);
        if (u->full && buf_len(&u->out) < DRAINED) {
                u->full = false;
                u->ops.drained(u->ctx);
        }
        if (!buf_len(&u->out))
                u->ops.sent(u->ctx);
}

/* @status is not needed: write() tells the error. */
static void on_writable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        flush_uplink(poll->data);
}

/* Runs before the loop sleeps: frames written by callbacks of this turn go out at once. */
static void on_prepare(uv_prepare_t *handle)
{
        struct uplink *u = handle->data;
        bool was_lost;

        do {
                was_lost = u->lost;
                u->ops.turn(u->ctx);
                if (buf_failed(&u->out))
                        uplink_lose(u, "out of memory");
                if (!u->writing)
                        flush_uplink(u);
        } while (u->lost && !was_lost); /* no other event may wake the loop */
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

bool uplink_full(struct uplink *u)
{
        /* Remembered, so drained() is called for every paused stream. */
        if (buf_len(&u->out) >= FULL)
                u->full = true;
        return u->full;
}

/* poll() also returns for the end of the stream and for an error, which a read then finds. */
bool uplink_readable(const struct uplink *u)
{
        struct pollfd p = { .fd = u->in_fd, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}
