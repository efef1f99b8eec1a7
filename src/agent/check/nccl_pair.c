/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper ends after NCCL_PAIR_S at the latest, and is reaped as any child of the agent: the pair
 * keeps no pid. A helper without a record has crashed or was killed.
 */
#include "agent/check/nccl_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/check/nccl_image.h"
#include "agent/core/carried_image.h"
#include "base/fd.h"
#include "base/memory.h"

struct nccl_pair {
        nccl_pair_done done; /* NULL = over */
        void *ctx;
        int fd; /* the record comes here */
        struct nccl_record record;
        uv_poll_t poll;
};

/* Starts a helper for the connection. @report: the helper's descriptor 0, or SPAWN_NULL. 0, or
 * -errno with @err. */
static int spawn_nccl_helper(int rank, int report, const uv_tcp_t *to,
                             const struct measure_nccl *how, struct error *err)
{
        pid_t pid;
        CLEANUP(free_textp) char *word = NULL;
        struct strv env = STRV_INIT;
        struct spawn s = { .cwd = "/", .fds = { report, SPAWN_NULL, SPAWN_NULL } };
        int fd, r = uv_fileno((const uv_handle_t *)to, &fd);

        if (r < 0)
                return err_set(err, -r, "no connection: %s", strerror(-r));
        for (char **e = environ; *e; e++)
                strv_push(&env, *e);
        strv_env_merge(&env, &how->env);
        word = xasprintf("%d %d %s", rank, fd, how->library);
        s.argv = &word;
        s.env = env.v;
        s.pass = fd;
        r = carried_image_spawn(&pid, "hnlaunch-nccl", &nccl_image, s, err);
        strv_finish(&env);
        return r;
}

void nccl_pair_serve(const uv_tcp_t *to, const struct measure_nccl *how)
{
        struct error err;

        /* The end of the connection tells the first helper that there is no second. */
        spawn_nccl_helper(1, SPAWN_NULL, to, how, &err);
}

static void on_pair_poll_closed(uv_handle_t *h)
{
        struct nccl_pair *p = h->data;

        fd_close(p->fd);
        free(p);
}

void nccl_pair_cancel(struct nccl_pair *p)
{
        if (!p || uv_is_closing((uv_handle_t *)&p->poll))
                return;
        uv_close((uv_handle_t *)&p->poll, on_pair_poll_closed);
}

/* A record is written whole or not at all. Only the end of the helper is the end of the test: the
 * GPU is free again. */
static void on_nccl_record(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
        struct nccl_pair *p = poll->data;
        struct nccl_record r;
        ssize_t n = read(p->fd, &r, sizeof(r));

        if (n == sizeof(r))
                p->record = r;
        if (n == sizeof(r) || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return;
        uv_poll_stop(poll);
        if (p->record.mark != NCCL_RECORD_MARK)
                snprintf(p->record.why, sizeof(p->record.why), "NCCL has ended the test program");
        p->record.why[sizeof(p->record.why) - 1] = '\0';
        uv_close((uv_handle_t *)&p->poll, on_pair_poll_closed);
        p->done(p->ctx, &p->record);
}

struct nccl_pair *nccl_pair_start(uv_loop_t *loop, const uv_tcp_t *to,
                                  const struct measure_nccl *how, nccl_pair_done done, void *ctx,
                                  struct error *err)
{
        struct nccl_pair *p;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
                err_set(err, errno, "cannot make a pipe: %s", strerror(errno));
                return NULL;
        }
        r = spawn_nccl_helper(0, fds[1], to, how, err);
        fd_close(fds[1]);
        if (r < 0) {
                fd_close(fds[0]);
                return NULL;
        }
        p = xcalloc(1, sizeof(*p));
        p->done = done;
        p->ctx = ctx;
        p->fd = fds[0];
        uv_poll_init(loop, &p->poll, p->fd);
        p->poll.data = p;
        uv_poll_start(&p->poll, UV_READABLE, on_nccl_record);
        return p;
}
