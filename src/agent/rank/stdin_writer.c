/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank/stdin_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strv.h"
#include "wire/msg.h"

enum {
        KEEP = 64 << 10, /* memory kept by an empty buffer */
};

static void credit(struct stdin_writer *f, size_t bytes)
{
        struct credit m = { .rank = f->rank, .bytes = (uint32_t)bytes };

        if (bytes)
                credit_encode(uplink_out(f->up), &m);
}

static void shut(struct stdin_writer *f)
{
        if (f->closed)
                return;
        f->closed = true;
        uv_poll_stop(&f->poll);
        f->fd = fd_close(f->fd);
        credit(f, buf_len(&f->waiting));
        buf_finish(&f->waiting);
}

static void on_writable(uv_poll_t *poll, int status, int events);

static void push(struct stdin_writer *f)
{
        size_t before = buf_len(&f->waiting);
        ssize_t n = 0;

        while (buf_len(&f->waiting)) {
                n = write(f->fd, buf_data(&f->waiting), buf_len(&f->waiting));
                if (n >= 0)
                        buf_consume(&f->waiting, (size_t)n);
                else if (errno != EINTR)
                        break;
        }
        credit(f, before - buf_len(&f->waiting));
        if (n < 0 && errno != EAGAIN) {
                shut(f); /* the worker has closed its end */
        } else if (buf_len(&f->waiting)) {
                if (!f->polling)
                        uv_poll_start(&f->poll, UV_WRITABLE, on_writable);
                f->polling = true;
        } else if (f->ending) {
                shut(f);
        } else {
                uv_poll_stop(&f->poll);
                f->polling = false;
                if (f->waiting.cap > KEEP)
                        buf_finish(&f->waiting);
        }
}

static void on_writable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        push(poll->data);
}

struct stdin_writer *stdin_writer_open(uv_loop_t *loop, struct uplink *up, uint32_t rank, int fd)
{
        struct stdin_writer *f = xcalloc(1, sizeof(*f));

        *f = (struct stdin_writer){ .up = up, .rank = rank, .fd = fd };
        if (uv_poll_init(loop, &f->poll, fd) < 0) {
                fd_close(fd);
                free(f);
                return NULL;
        }
        f->poll.data = f;
        return f;
}

static void on_closed(uv_handle_t *handle)
{
        struct stdin_writer *f = handle->data;

        buf_finish(&f->waiting);
        free(f);
}

void stdin_writer_close(struct stdin_writer *f)
{
        if (!f)
                return;
        uv_poll_stop(&f->poll);
        f->fd = fd_close(f->fd);
        uv_close((uv_handle_t *)&f->poll, on_closed);
}

void stdin_writer_push(struct stdin_writer *f, const void *data, size_t len)
{
        if (f->closed) {
                credit(f, len);
                return;
        }
        f->ending = f->ending || !len;
        if (buf_append(&f->waiting, data, len) < 0)
                shut(f);
        else
                push(f);
}
