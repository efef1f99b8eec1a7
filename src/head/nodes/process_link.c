/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link has three handles: the process, a pipe for its stderr, and a timer. The timer fires at
 * once to report opened() or failed() from the loop, and later ends the wait for stderr. ended() is
 * called when the process has exited and stderr is at the end, or DRAIN_MS later: a background
 * process may hold the pipe. The last closed handle frees the link.
 */
#include "head/nodes/process_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/core/text_tail.h"

/* How long the stderr may stay open after the exit: another process may hold it. */
#define DRAIN_MS 200

enum process_state { PROCESS_STARTING, PROCESS_FAILED, PROCESS_RUNNING, PROCESS_ENDED };

struct process_link {
        struct link link;
        enum process_state state;
        const struct link_callbacks *cb;
        void *ctx;
        const char *name;
        process_link_classify classify;
        uv_process_t process;
        uv_pipe_t err;
        uv_timer_t timer;
        int handles; /* not yet closed; the last frees the link */
        int fd;      /* our end of the pair, -1 once passed to opened() */
        bool closed, exited, stderr_ended;
        int status, signal;
        struct link_failure why;
        char text[4096];
};

static void on_process_handle_closed(uv_handle_t *h)
{
        struct process_link *p = h->data;

        if (--p->handles == 0)
                free(p);
}

static void describe_process_exit(struct process_link *p)
{
        p->why.phase = LINK_OPEN;
        p->why.cause = LINK_ENDED;
        if (p->signal)
                snprintf(p->why.fact, sizeof(p->why.fact), "%s was killed by signal %d (%s)",
                         p->name, p->signal, strsignal(p->signal));
        else
                snprintf(p->why.fact, sizeof(p->why.fact), "%s ended with exit code %d", p->name,
                         p->status);
}

static void end_process_link(struct process_link *p)
{
        if (p->state != PROCESS_RUNNING || p->closed)
                return;
        p->state = PROCESS_ENDED;
        uv_timer_stop(&p->timer);
        describe_process_exit(p);
        if (p->classify)
                p->classify(&p->link, p->status, p->signal, &p->why);
        p->cb->ended(p->ctx, &p->why);
}

static void on_process_timer(uv_timer_t *timer)
{
        struct process_link *p = timer->data;

        if (p->closed)
                return;
        if (p->state == PROCESS_FAILED) {
                p->cb->failed(p->ctx, &p->why);
        } else if (p->state == PROCESS_STARTING) {
                int fd = p->fd;

                p->state = PROCESS_RUNNING;
                p->fd = -1;
                if (p->exited)
                        uv_timer_start(timer, on_process_timer, DRAIN_MS, 0);
                p->cb->opened(p->ctx, fd);
        } else if (p->exited) {
                end_process_link(p);
        }
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal)
{
        struct process_link *p = process->data;

        p->exited = true;
        p->status = (int)status;
        p->signal = signal;
        if (p->state != PROCESS_RUNNING || p->closed)
                return;
        if (p->stderr_ended)
                end_process_link(p);
        else
                uv_timer_start(&p->timer, on_process_timer, DRAIN_MS, 0);
}

static void on_process_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *buf)
{
        struct process_link *p = h->data;

        *buf = uv_buf_init(p->text, sizeof(p->text));
}

static void on_process_stderr(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        struct process_link *p = stream->data;

        if (p->closed || n == 0)
                return;
        if (n > 0) {
                text_tail_add(p->why.evidence, sizeof(p->why.evidence), buf->base, (size_t)n);
                p->cb->noise(p->ctx, buf->base, (size_t)n);
                return;
        }
        uv_read_stop(stream);
        p->stderr_ended = true;
        if (p->exited)
                end_process_link(p);
}

/* Starts the process on @fd; 0 or a negative errno. */
static int spawn_link_process(struct process_link *p, uv_loop_t *loop, char *const argv[], int fd)
{
        uv_stdio_container_t stdio[3] = {
                { .flags = UV_INHERIT_FD, .data.fd = fd },
                { .flags = UV_INHERIT_FD, .data.fd = fd },
                { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
                  .data.stream = (uv_stream_t *)&p->err },
        };
        uv_process_options_t options = {
                .file = argv[0],
                .args = (char **)argv,
                .flags = UV_PROCESS_DETACHED,
                .stdio_count = 3,
                .stdio = stdio,
                .exit_cb = on_process_exit,
        };
        int r = uv_spawn(loop, &p->process, &options);

        return r < 0 ? r
                     : uv_read_start((uv_stream_t *)&p->err, on_process_alloc, on_process_stderr);
}

static void start_link_process(struct process_link *p, uv_loop_t *loop, char *const argv[])
{
        int fds[2], r = fd_pair(fds);

        if (r == 0) {
                r = spawn_link_process(p, loop, argv, fds[1]);
                fd_close(fds[1]);
                p->fd = fds[0];
                if (r == 0)
                        r = fd_set_nonblock(p->fd);
        }
        if (r == 0)
                return;
        p->state = PROCESS_FAILED;
        p->why.phase = LINK_EXEC;
        p->why.cause = LINK_SPAWN;
        snprintf(p->why.fact, sizeof(p->why.fact), "cannot start %s: %s", argv[0], strerror(-r));
}

struct link *process_link_open(struct transport *t, uv_loop_t *loop, char *const argv[],
                               const char *name, process_link_classify classify,
                               const struct link_callbacks *cb, void *ctx)
{
        struct process_link *p = xcalloc(1, sizeof(*p));

        p->link.transport = t;
        p->cb = cb;
        p->ctx = ctx;
        p->name = name;
        p->classify = classify;
        p->fd = -1;
        p->process.data = p->err.data = p->timer.data = p;
        uv_pipe_init(loop, &p->err, 0);
        uv_timer_init(loop, &p->timer);
        p->handles = 3;
        start_link_process(p, loop, argv);
        uv_timer_start(&p->timer, on_process_timer, 0, 0);
        return &p->link;
}

void process_link_close(struct link *l)
{
        struct process_link *p = container_of(l, struct process_link, link);

        p->closed = true;
        p->fd = fd_close(p->fd);
        /* uv_spawn() initializes the process handle even when it fails after its checks; a failed
         * fd_pair leaves the handle untouched. */
        if (p->process.type == UV_PROCESS)
                uv_close((uv_handle_t *)&p->process, on_process_handle_closed);
        else
                p->handles--;
        uv_close((uv_handle_t *)&p->err, on_process_handle_closed);
        uv_close((uv_handle_t *)&p->timer, on_process_handle_closed);
}
