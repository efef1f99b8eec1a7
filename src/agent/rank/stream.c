/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control has two conditions: the head's credit (window minus bytes sent and not yet written
 * there) and the uplink's fill level. When one forbids reading, polling stops; stream_credit() and
 * stream_resume() start it again. A read goes directly into the frame in the uplink's buffer. The
 * end is reported as an OUTPUT of length 0: at end of file, or once stream_drain() was called and
 * the pipe is empty.
 */
#include "agent/rank/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/core/fd_unwatch.h"
#include "base/memory.h"
#include "wire/msg.h"

enum { CATCH_UP_READS = 4 }; /* times MSG_OUTPUT_MAX, more than a pipe holds */

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_closed(uv_handle_t *handle)
{
        free(handle->data);
}

void stream_close(struct stream *s)
{
        if (!s)
                return;
        fd_unwatch(&s->poll, &s->fd, on_closed);
}

/* Returns how many bytes may be read now. Without a head there is no credit any more; the pipe is
 * emptied, so no process blocks. */
static size_t get_stream_credit(const struct stream *s)
{
        return s->up->lost ? MSG_OUTPUT_MAX : MIN(s->window - s->unwritten, MSG_OUTPUT_MAX);
}

/* Reads once, right into the message: 1 with bytes, 0 without or without credit, -1 when the stream
 * has ended. */
static int pump_stream(struct stream *s)
{
        const struct output m = { .rank = s->rank, .stream = s->number };
        size_t max = get_stream_credit(s), mark;
        void *data;
        ssize_t n;

        if (!max || uplink_full(s->up)) {
                /* stream_credit() or stream_resume() starts the poll again. */
                uv_poll_stop(&s->poll);
                return 0;
        }
        data = output_begin(&s->up->out, &m, max, &mark);
        if (!data)
                return 0; /* the uplink ends for lack of memory */
        n = read(s->fd, data, max);
        if (n > 0)
                node_trace_output(s->trace, s->rank, s->number, data, (size_t)n);
        output_end(&s->up->out, mark, n > 0 ? (size_t)n : 0);
        if (n > 0) {
                s->heard_ns = uv_hrtime();
                s->unwritten += s->up->lost ? 0 : (uint32_t)n;
                return 1;
        }
        /* While draining an empty pipe is the end. */
        if (n < 0 && (errno == EINTR || (errno == EAGAIN && !s->draining)))
                return 0;
        output_encode(&s->up->out, &m);
        /* Before the close, because the callback reads @s. */
        s->ended(s->ctx, s);
        stream_close(s);
        return -1;
}

static void on_readable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        pump_stream(poll->data);
}

struct stream *stream_open(uv_loop_t *loop, struct uplink *up, uint32_t rank, uint8_t number,
                           uint32_t window, int fd,
                           void (*ended)(void *ctx, const struct stream *s), void *ctx)
{
        struct stream *s = xcalloc(1, sizeof(*s));

        *s = (struct stream){
                .up = up,
                .ended = ended,
                .ctx = ctx,
                .rank = rank,
                .number = number,
                .fd = fd,
                .window = window ? window : MSG_WINDOW,
        };
        if (uv_poll_init(loop, &s->poll, fd) < 0) {
                fd_close(fd);
                free(s);
                return NULL;
        }
        s->poll.data = s;
        return s;
}

void stream_credit(struct stream *s, uint32_t bytes)
{
        /* More credit than bytes would make the window larger for ever. */
        s->unwritten -= MIN(bytes, s->unwritten);
        stream_resume(s);
}

void stream_resume(struct stream *s)
{
        int r = 1;

        if (!get_stream_credit(s) || uplink_full(s->up))
                return;
        if (!uv_is_active((uv_handle_t *)&s->poll))
                uv_poll_start(&s->poll, UV_READABLE, on_readable);
        /* An end held open by a foreign process would never make the pipe readable. */
        while (s->draining && r > 0)
                r = pump_stream(s);
}

void stream_catch_up(struct stream *s)
{
        /* A pipe holds no more than this, unless a process goes on writing. */
        for (int i = 0; i < CATCH_UP_READS && pump_stream(s) > 0; i++)
                continue;
}

void stream_drain(struct stream *s)
{
        s->draining = true;
        stream_resume(s);
}
