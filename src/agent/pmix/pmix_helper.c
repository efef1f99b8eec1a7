/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames go through a single socket in both directions. The socket is polled for writing only while
 * bytes wait. The end of the helper is seen by reading alone: a failed write leaves its bytes, and
 * the next read finds the end.
 */
#include "agent/pmix/pmix_helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/carried_image.h"
#include "agent/core/fd_unwatch.h"
#include "agent/pmix/pmix_image.h"
#include "base/fd.h"
#include "base/memory.h"

enum { READ_SIZE = 64 << 10 };

struct pmix_helper {
        struct pmix_helper_ops ops;
        void *ctx;
        pid_t pid;
        int fd;             /* the agent's end */
        bool ended, killed; /* ended: told to ops; killed: @ops may not be called any more */
        struct buf in, out;
        uv_poll_t poll;
};

/* --- frames ----------------------------------------------------------------------------------- */

static void on_helper_event(uv_poll_t *poll, int status, int events);

static void watch_helper(struct pmix_helper *h)
{
        if (!h->ended)
                uv_poll_start(&h->poll, UV_READABLE | (buf_len(&h->out) ? UV_WRITABLE : 0),
                              on_helper_event);
}

static void end_helper(struct pmix_helper *h)
{
        if (h->ended)
                return;
        h->ended = true;
        uv_poll_stop(&h->poll);
        h->ops.ended(h->ctx);
}

/* Reads once, and hands on what is whole. False: nothing was there, or the end. */
static bool read_helper(struct pmix_helper *h)
{
        size_t room = MAX(frame_missing(&h->in), (size_t)READ_SIZE);
        void *to = buf_reserve(&h->in, room);
        /* Without memory the helper counts as ended: its frames cannot be read. */
        ssize_t n = to ? read(h->fd, to, room) : -1;
        struct frame f;
        int r = 0;

        if (n < 0 && to && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n > 0)
                buf_advance(&h->in, (size_t)n);
        /* A frame may end the service, and with the service this object. */
        while (!h->killed && (r = frame_peek(&h->in, &f, NULL)) > 0) {
                h->ops.frame(h->ctx, &f);
                frame_consume(&h->in, &f);
        }
        if (!h->killed && (n <= 0 || r < 0))
                end_helper(h);
        return !h->ended;
}

void pmix_helper_catch_up(struct pmix_helper *h)
{
        while (!h->ended && read_helper(h))
                ;
}

static void write_helper(struct pmix_helper *h)
{
        ssize_t n;

        while (buf_len(&h->out) && !h->ended) {
                n = send(h->fd, buf_data(&h->out), buf_len(&h->out), MSG_NOSIGNAL);
                if (n > 0)
                        buf_consume(&h->out, (size_t)n);
                else if (errno != EINTR)
                        break; /* the end is seen by reading */
        }
}

void pmix_helper_flush(struct pmix_helper *h)
{
        write_helper(h);
        watch_helper(h);
}

static void on_helper_event(uv_poll_t *poll, int status, int events)
{
        struct pmix_helper *h = poll->data;

        if (status < 0) {
                end_helper(h);
                return;
        }
        if (events & UV_WRITABLE)
                pmix_helper_flush(h);
        if (events & UV_READABLE)
                read_helper(h);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct pmix_helper *pmix_helper_start(uv_loop_t *loop, const struct strv *env,
                                      struct pmix_helper_ops ops, void *ctx, struct error *err)
{
        int fds[2], r = fd_pair(fds);
        struct pmix_helper *h;

        if (r < 0) {
                err_set(err, -r, "cannot make a socket: %s", strerror(-r));
                return NULL;
        }
        h = xcalloc(1, sizeof(*h));
        h->ops = ops;
        h->ctx = ctx;
        h->fd = fds[0];
        r = carried_image_spawn(&h->pid, "hnlaunch-pmix", &pmix_image,
                                /* The loader needs the environment of the ranks, so that libpmix
                                 * is theirs. Messages of libpmix go to the agent's stderr. */
                                (struct spawn){ .env = env->v,
                                                .cwd = "/",
                                                .fds = { fds[1], SPAWN_NULL, SPAWN_INHERIT } },
                                err);
        fd_close(fds[1]);
        if (r == 0 && (fd_set_nonblock(h->fd) < 0 || uv_poll_init(loop, &h->poll, h->fd) < 0))
                r = err_set(err, ENOMEM, "cannot watch a socket");
        if (r < 0) {
                if (h->pid) /* the agent reaps all children */
                        kill(h->pid, SIGKILL);
                fd_close(h->fd);
                free(h);
                return NULL;
        }
        h->poll.data = h;
        watch_helper(h);
        return h;
}

pid_t pmix_helper_pid(const struct pmix_helper *h)
{
        return h->pid;
}

struct buf *pmix_helper_out(struct pmix_helper *h)
{
        return &h->out;
}

static void on_helper_closed(uv_handle_t *handle)
{
        struct pmix_helper *h = handle->data;

        buf_finish(&h->in);
        buf_finish(&h->out);
        free(h);
}

void pmix_helper_kill(struct pmix_helper *h)
{
        h->killed = h->ended = true;
        kill(h->pid, SIGKILL);
        fd_unwatch(&h->poll, &h->fd, on_helper_closed);
}
