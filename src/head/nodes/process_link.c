/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/process_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

/* How long the stderr may stay open after the exit: something else may hold it. */
#define DRAIN_MS 200

enum child_state { CHILD_STARTING, CHILD_FAILED, CHILD_RUNNING, CHILD_ENDED };

struct child {
        struct link link;
        enum child_state state;
        const struct link_callbacks *cb;
        void *ctx;
        const char *what;
        process_link_judge judge;
        uv_process_t process;
        uv_pipe_t err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last one frees the child */
        int fd;      /* our end of the pair until opened() gave it away */
        bool closed, exited, silent;
        int status, signal;
        struct link_failure why;
        size_t said; /* bytes in why.evidence */
        char text[4096];
};

static void child_handle_closed(uv_handle_t *h)
{
        struct child *c = h->data;

        if (--c->handles == 0)
                free(c);
}

/* Keeps the last bytes: the reason is at the end, banners are at the start. */
static void child_remember(struct child *c, const char *text, size_t len)
{
        size_t room = sizeof(c->why.evidence) - 1;

        if (len > room) {
                text += len - room;
                len = room;
        }
        if (c->said + len > room) {
                size_t drop = c->said + len - room;

                memmove(c->why.evidence, c->why.evidence + drop, c->said - drop);
                c->said -= drop;
        }
        memcpy(c->why.evidence + c->said, text, len);
        c->said += len;
        c->why.evidence[c->said] = '\0';
}

static void child_say_exit(struct child *c)
{
        c->why.phase = LINK_OPEN;
        c->why.cause = LINK_ENDED;
        if (c->signal)
                snprintf(c->why.fact, sizeof(c->why.fact), "%s was killed by signal %d (%s)",
                         c->what, c->signal, strsignal(c->signal));
        else
                snprintf(c->why.fact, sizeof(c->why.fact), "%s ended with exit code %d", c->what,
                         c->status);
}

static void child_end(struct child *c)
{
        if (c->state != CHILD_RUNNING || c->closed)
                return;
        c->state = CHILD_ENDED;
        uv_timer_stop(&c->timer);
        child_say_exit(c);
        if (c->judge)
                c->judge(&c->link, c->status, c->signal, &c->why);
        c->cb->ended(c->ctx, &c->why);
}

static void child_timer(uv_timer_t *timer)
{
        struct child *c = timer->data;

        if (c->closed)
                return;
        if (c->state == CHILD_FAILED) {
                c->cb->failed(c->ctx, &c->why);
        } else if (c->state == CHILD_STARTING) {
                int fd = c->fd;

                c->state = CHILD_RUNNING;
                c->fd = -1;
                if (c->exited)
                        uv_timer_start(timer, child_timer, DRAIN_MS, 0);
                c->cb->opened(c->ctx, fd);
        } else if (c->exited) {
                child_end(c);
        }
}

static void child_exited(uv_process_t *process, int64_t status, int signal)
{
        struct child *c = process->data;

        c->exited = true;
        c->status = (int)status;
        c->signal = signal;
        if (c->state != CHILD_RUNNING || c->closed)
                return;
        if (c->silent)
                child_end(c);
        else
                uv_timer_start(&c->timer, child_timer, DRAIN_MS, 0);
}

static void child_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct child *c = h->data;

        *buf = uv_buf_init(c->text, sizeof(c->text));
}

static void child_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        struct child *c = stream->data;

        if (c->closed || n == 0)
                return;
        if (n > 0) {
                child_remember(c, buf->base, (size_t)n);
                c->cb->noise(c->ctx, buf->base, (size_t)n);
                return;
        }
        uv_read_stop(stream);
        c->silent = true;
        if (c->exited)
                child_end(c);
}

/* Starts the process on @fd; 0 or a negative errno. */
static int child_spawn(struct child *c, uv_loop_t *loop, char *const argv[], int fd)
{
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_INHERIT_FD, .data.fd = fd },
                { .flags = UV_INHERIT_FD, .data.fd = fd },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&c->err },
        };
        uv_process_options_t options = {
                .file = argv[0],
                .args = (char **)argv,
                .flags = UV_PROCESS_DETACHED,
                .stdio_count = 3,
                .stdio = stdio,
                .exit_cb = child_exited,
        };
        int r = uv_spawn(loop, &c->process, &options);

        return r < 0 ? r : uv_read_start((uv_stream_t *)&c->err, child_alloc, child_read);
}

static void child_start(struct child *c, uv_loop_t *loop, char *const argv[])
{
        int fds[2], r = fd_pair(fds);

        if (r == 0) {
                r = child_spawn(c, loop, argv, fds[1]);
                fd_close(fds[1]);
                c->fd = fds[0];
                if (r == 0)
                        r = fd_set_nonblock(c->fd);
        }
        if (r == 0)
                return;
        c->state = CHILD_FAILED;
        c->why.phase = LINK_EXEC;
        c->why.cause = LINK_SPAWN;
        snprintf(c->why.fact, sizeof(c->why.fact), "cannot start %s: %s", argv[0], strerror(-r));
}

struct link *process_link_open(struct transport *t, uv_loop_t *loop, char *const argv[],
                               const char *what, process_link_judge judge,
                               const struct link_callbacks *cb, void *ctx)
{
        struct child *c = xcalloc(1, sizeof(*c));

        c->link.transport = t;
        c->cb = cb;
        c->ctx = ctx;
        c->what = what;
        c->judge = judge;
        c->fd = -1;
        c->process.data = c->err.data = c->timer.data = c;
        uv_pipe_init(loop, &c->err, 0);
        uv_timer_init(loop, &c->timer);
        c->handles = 3;
        child_start(c, loop, argv);
        uv_timer_start(&c->timer, child_timer, 0, 0);
        return &c->link;
}

void process_link_close(struct link *l)
{
        struct child *c = container_of(l, struct child, link);

        c->closed = true;
        c->fd = fd_close(c->fd);
        /* uv_spawn() initializes the process handle even when it fails after its checks; an fd_pair
         * that failed leaves it untouched. */
        if (c->process.type == UV_PROCESS)
                uv_close((uv_handle_t *)&c->process, child_handle_closed);
        else
                c->handles--;
        uv_close((uv_handle_t *)&c->err, child_handle_closed);
        uv_close((uv_handle_t *)&c->timer, child_handle_closed);
}
