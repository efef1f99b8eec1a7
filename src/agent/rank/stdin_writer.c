/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of the head wait in @waiting and go into the pipe as fast as the worker reads. Every byte
 * is credited once: when written, or when dropped because the pipe is closed. The character that
 * ends a terminal's input is the agent's own and is not credited. The object is freed when the
 * loop has let go of the poll handle and the owner has called stdin_writer_close(), in any order.
 */
#include "agent/rank/stdin_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/core/fd_unwatch.h"
#include "base/memory.h"
#include "wire/msg.h"

enum {
        KEEP = 64 << 10, /* memory kept by an empty buffer */
};

static void send_credit(struct stdin_writer *w, size_t bytes)
{
        struct credit m = { .rank = w->rank, .bytes = (uint32_t)bytes };

        if (bytes)
                credit_encode(&w->up->out, &m);
}

/* Credits what was written since @before bytes were waiting. */
static void credit_written(struct stdin_writer *w, size_t before)
{
        /* The agent's own byte is the last, so it is written when fewer than @own bytes wait. */
        size_t now = buf_len(&w->waiting), own = w->own - MIN(w->own, now);

        send_credit(w, before - now - own);
        w->own -= own;
}

static void free_writer(struct stdin_writer *w)
{
        buf_finish(&w->waiting);
        free(w);
}

static void on_closed(uv_handle_t *handle)
{
        struct stdin_writer *w = handle->data;

        w->unwatched = true;
        if (w->dropped)
                free_writer(w);
}

/* Closes the pipe. What still waits is credited, because the rank will not read it. */
static void shut_stdin(struct stdin_writer *w)
{
        if (w->fd < 0)
                return;
        fd_unwatch(&w->poll, &w->fd, on_closed);
        send_credit(w, buf_len(&w->waiting) - w->own);
        buf_finish(&w->waiting);
}

static void on_writable(uv_poll_t *poll, int status, int events);

/* Writes as much as the pipe takes, and polls only while bytes wait. */
static void write_stdin(struct stdin_writer *w)
{
        size_t before = buf_len(&w->waiting);
        ssize_t n = 0;

        while (buf_len(&w->waiting)) {
                n = write(w->fd, buf_data(&w->waiting), buf_len(&w->waiting));
                if (n >= 0)
                        buf_consume(&w->waiting, (size_t)n);
                else if (errno != EINTR)
                        break;
        }
        credit_written(w, before);
        if (n < 0 && errno != EAGAIN) {
                shut_stdin(w); /* the worker has closed its end */
        } else if (buf_len(&w->waiting)) {
                if (!uv_is_active((uv_handle_t *)&w->poll))
                        uv_poll_start(&w->poll, UV_WRITABLE, on_writable);
        } else if (w->ending) {
                shut_stdin(w);
        } else {
                uv_poll_stop(&w->poll);
                if (w->waiting.cap > KEEP)
                        buf_finish(&w->waiting);
        }
}

static void on_writable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        write_stdin(poll->data);
}

struct stdin_writer *stdin_writer_open(uv_loop_t *loop, struct uplink *up, uint32_t rank, int fd)
{
        struct stdin_writer *w = xcalloc(1, sizeof(*w));

        *w = (struct stdin_writer){ .up = up, .rank = rank, .fd = fd };
        if (uv_poll_init(loop, &w->poll, fd) < 0) {
                fd_close(fd);
                free(w);
                return NULL;
        }
        w->poll.data = w;
        return w;
}

void stdin_writer_close(struct stdin_writer *w)
{
        if (!w)
                return;
        if (w->fd >= 0)
                fd_unwatch(&w->poll, &w->fd, on_closed);
        w->dropped = true;
        if (w->unwatched)
                free_writer(w);
}

void stdin_writer_push(struct stdin_writer *w, const void *data, size_t len)
{
        static const char end = '\004'; /* VEOF */

        if (w->fd < 0) {
                send_credit(w, len); /* dropped, but the head must not wait for the credit */
                return;
        }
        if (!len && w->is_terminal) {
                data = &end;
                len = 1;
                w->own++;
        }
        w->ending = w->ending || !len;
        if (buf_append(&w->waiting, data, len) < 0)
                shut_stdin(w);
        else
                write_stdin(w);
}
