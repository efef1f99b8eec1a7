/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_start() makes the pipes, hands our ends to streams and the stdin writer, and forks; the
 * exec goes on in the child while the agent continues. worker_confirm() learns through a
 * close-on-exec pipe (base/spawn) whether the exec succeeded; only then are the outputs read, so a
 * refused rank leaves no output. The process leads a session and process group of its own; the
 * agent reaps the process and sets @reaped, and sends no signal after that.
 */
#include "agent/rank/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/rank/limits.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/msg.h"

/* Both ends of stdin, stdout and stderr; -1 = none. */
struct worker_pipes {
        int ours[3], theirs[3];
};

static void close_pipes(struct worker_pipes *p)
{
        for (int i = 0; i < 3; i++) {
                p->ours[i] = fd_close(p->ours[i]);
                p->theirs[i] = fd_close(p->theirs[i]);
        }
}

static int open_pipes(struct worker_pipes *p, bool fed)
{
        int fds[2], writer;

        for (int i = fed ? 0 : 1; i < 3; i++) {
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                writer = i == 0 ? 0 : 1; /* of stdin we are the writer */
                p->theirs[i] = fds[writer];
                p->ours[i] = fds[!writer];
        }
        return 0;
}

/* The stream goes away behind this. */
static void note_output_end(struct worker *w, int i)
{
        w->heard_ns = MAX(w->heard_ns, w->out[i]->heard_ns);
        w->out[i] = NULL;
}

static void on_stdout_ended(void *ctx)
{
        note_output_end(ctx, 0);
}

static void on_stderr_ended(void *ctx)
{
        note_output_end(ctx, 1);
}

/* Gives our ends to the streams. */
static int attach_streams(struct worker *w, const struct worker_setup *s, struct worker_pipes *p)
{
        w->out[0] = stream_open(s->loop, s->up, w->rank, MSG_STDOUT, s->window, p->ours[1],
                                on_stdout_ended, w);
        w->out[1] = stream_open(s->loop, s->up, w->rank, MSG_STDERR, s->window, p->ours[2],
                                on_stderr_ended, w);
        if (s->fed)
                w->in = stdin_writer_open(s->loop, s->up, w->rank, p->ours[0]);
        p->ours[0] = p->ours[1] = p->ours[2] = -1;
        return w->out[0] && w->out[1] && (w->in || !s->fed) ? 0 : -ENOMEM;
}

/* In the child. */
static int enter_worker(void *ctx)
{
        const struct contain *c = ctx;

        limits_restore();
        if (c->pidns.keeper)
                pidns_child(); /* without a /proc of its own the rank is contained as well */
        return 0;
}

static int spawn_worker(struct worker *w, const struct worker_setup *s, struct worker_pipes *p,
                        struct error *err)
{
        struct spawn spawn = {
                .argv = s->argv->v,
                .env = s->env->v,
                .cwd = s->cwd,
                .fds = { p->theirs[0], p->theirs[1], p->theirs[2] },
                .session = true,
                .death_signal = SIGKILL,
                .cgroup = MAX(s->contain->cgroup.folder, 0),
                .enter = enter_worker,
                .enter_ctx = s->contain,
        };
        int r;

        r = open_pipes(p, s->fed);
        if (!r) {
                memcpy(spawn.fds, p->theirs, sizeof(spawn.fds));
                r = attach_streams(w, s, p);
        }
        if (r < 0)
                return err_set(err, -r, "cannot make pipes for a process: %s", strerror(-r));
        r = spawn_begin(&w->spawning, &spawn, err);
        w->pid = w->spawning.pid;
        w->spawning.program = w->program;
        w->spawning.cwd = w->cwd;
        return r;
}

struct worker *worker_start(const struct worker_setup *s, struct error *err)
{
        struct worker_pipes p = { { -1, -1, -1 }, { -1, -1, -1 } };
        struct worker *w = xcalloc(1, sizeof(*w));
        int r;

        w->rank = s->rank;
        w->program = xstrdup(s->argv->v[0]);
        w->cwd = xstrdup(s->cwd ? s->cwd : "");
        w->spawning.fd = -1;
        r = spawn_worker(w, s, &p, err);
        close_pipes(&p);
        if (r < 0) {
                worker_destroy(w);
                return NULL;
        }
        return w;
}

int worker_confirm(struct worker *w, int ms, enum spawn_step *ret_step, struct error *err)
{
        int r;

        if (w->started)
                return 1;
        if (!spawn_wait(&w->spawning, ms))
                return 0;
        r = spawn_confirm(&w->spawning, ret_step, err);
        if (r < 0)
                return r;
        w->started = true;
        worker_resume(w);
        return 1;
}

void worker_destroy(struct worker *w)
{
        stream_close(w->out[0]);
        stream_close(w->out[1]);
        stdin_writer_close(w->in);
        fd_close(w->spawning.fd);
        free(w->program);
        free(w->cwd);
        free(w);
}

void worker_signal(const struct worker *w, int signo)
{
        if (!w->reaped)
                kill(w->started ? -w->pid : w->pid, signo);
}

void worker_stdin(struct worker *w, const void *data, size_t len)
{
        if (w->in)
                stdin_writer_push(w->in, data, len);
}

void worker_credit(struct worker *w, uint8_t stream, uint32_t bytes)
{
        if (stream >= MSG_STDOUT && stream <= MSG_STDERR && w->out[stream - MSG_STDOUT])
                stream_credit(w->out[stream - MSG_STDOUT], bytes);
}

void worker_resume(struct worker *w)
{
        for (int i = 0; i < 2 && w->started; i++)
                if (w->out[i])
                        stream_resume(w->out[i]);
}

void worker_catch_up(struct worker *w)
{
        for (int i = 0; i < 2 && w->started; i++)
                if (w->out[i])
                        stream_catch_up(w->out[i]);
}

void worker_drain(struct worker *w)
{
        for (int i = 0; i < 2; i++)
                if (w->out[i])
                        stream_drain(w->out[i]);
}

uint64_t worker_heard_ns(const struct worker *w)
{
        uint64_t ns = w->heard_ns;

        for (int i = 0; i < 2; i++)
                if (w->out[i])
                        ns = MAX(ns, w->out[i]->heard_ns);
        return ns;
}
