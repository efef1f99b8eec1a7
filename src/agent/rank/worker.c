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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/rank/limits.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/env/nccl_env.h"
#include "wire/msg.h"

/* Makes pipes for stdout and stderr, and for stdin if @fed. The agent writes to stdin and reads
 * from the others. -errno: the ends made so far are the caller's to close. */
static int open_pipes(int ours[3], int theirs[3], bool fed)
{
        int fds[2], writer;

        for (int i = fed ? 0 : 1; i < 3; i++) {
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                writer = i == 0 ? 0 : 1;
                theirs[i] = fds[writer];
                ours[i] = fds[!writer];
        }
        return 0;
}

/* Makes a terminal in place of the pipes. Its output is that of stdout; stderr ends at once.
 * Source: pty(7). */
static int open_rank_terminal(int ours[3], int theirs[3], const struct launch_terminal *t)
{
        const struct winsize size = { .ws_row = (unsigned short)t->rows,
                                      .ws_col = (unsigned short)t->columns };
        char name[64];
        int fds[2];

        /* O_NOCTTY: the terminal becomes that of the rank, in enter_worker(), not of the agent. */
        ours[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ours[1] < 0 || grantpt(ours[1]) < 0 || unlockpt(ours[1]) < 0 ||
            ptsname_r(ours[1], name, sizeof(name)) != 0)
                return -errno;
        theirs[0] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (theirs[0] < 0 || ioctl(theirs[0], TIOCSWINSZ, &size) < 0)
                return -errno;
        theirs[1] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
        theirs[2] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
        ours[0] = fcntl(ours[1], F_DUPFD_CLOEXEC, 3);
        if (theirs[1] < 0 || theirs[2] < 0 || ours[0] < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours[2] = fds[0];
        /* A pipe without a writer: stderr ends at once, as its bytes come by the terminal. */
        close(fds[1]);
        return 0;
}

static void on_output_ended(void *ctx, const struct stream *s)
{
        struct worker *w = ctx;

        w->heard_ns = MAX(w->heard_ns, s->heard_ns);
        /* Kept for a process that starts in place of this one: see struct worker_setup. */
        w->unwritten[s->number - MSG_STDOUT] = s->unwritten;
        w->out[s->number - MSG_STDOUT] = NULL;
}

/* Whether standard input comes from worker_stdin(). */
static bool is_fed(const struct worker_setup *s)
{
        return s->order->stdin_rank == s->rank || s->order->stdin_rank == MSG_EVERY_RANK;
}

/* Gives the agent's ends of the pipes away. */
static int attach_streams(struct worker *w, const struct worker_setup *s, int ours[3])
{
        bool has_terminal = launch_order_terminal(s->order, s->rank);
        bool has_input = has_terminal || is_fed(s);

        for (uint8_t i = 0; i < 2; i++) {
                w->out[i] = stream_open(s->loop, s->up, w->rank, MSG_STDOUT + i, s->order->window,
                                        ours[1 + i], on_output_ended, w);
                if (!w->out[i])
                        continue;
                w->out[i]->trace = s->trace;
                w->out[i]->unwritten = s->unwritten[i];
        }
        if (has_input)
                w->in = stdin_writer_open(s->loop, s->up, w->rank, ours[0]);
        if (w->in)
                w->in->is_terminal = has_terminal;
        w->has_terminal = has_terminal;
        ours[0] = ours[1] = ours[2] = -1;
        return w->out[0] && w->out[1] && (w->in || !has_input) ? 0 : -ENOMEM;
}

struct worker_child {
        const struct worker_setup *setup;
        int terminal; /* its side of the terminal; -1 = none */
};

/* In the child, which may wait for a file system. Only async-signal-safe functions: 0, or
 * -errno. */
static int enter_worker(void *ctx)
{
        const struct worker_child *c = ctx;
        const struct worker_setup *s = c->setup;

        /* Needs a session without a terminal, which the child has just begun. */
        if (c->terminal >= 0 && ioctl(c->terminal, TIOCSCTTY, 0) < 0)
                return -errno;
        limits_raise_worker();
        if (s->binding)
                order_binding_enter(s->binding, s->bind_note);
        if (s->contain->pidns.keeper)
                pidns_child(); /* without a /proc of its own the rank is contained as well */
        if (s->older_names)
                nccl_env_fit(s->env->v, s->older_names,
                             torch_note_find(s->torch, s->argv->v, s->env->v, s->cwd));
        return 0;
}

/* Does what enter_worker() does, for the process of a prepared interpreter. Its limits are raised
 * already. 0, or -errno. */
static int place_prepared(const struct worker_setup *s, pid_t pid)
{
        int cgroup = s->contain->cgroup.folder, procs, ret = 0;

        if (cgroup > 0) {
                char text[16];
                int n = snprintf(text, sizeof(text), "%d", (int)pid);

                procs = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
                if (procs < 0 || write(procs, text, (size_t)n) != n)
                        ret = -errno;
                fd_close(procs);
        }
        if (ret == 0 && s->binding &&
            sched_setaffinity(pid, sizeof(s->binding->cpus),
                              (const cpu_set_t *)(const void *)&s->binding->cpus) < 0)
                ret = -errno;
        return ret;
}

/* Hands the rank over to a prepared interpreter. False: a process is to be started. */
static bool take_prepared(struct spawning *ret, const struct worker_setup *s, const int fds[3])
{
        struct warm_rank rank = {
                .order = s->order,
                .rank = s->rank,
                .argv = s->argv,
                .env = s->env,
                .older_names = s->older_names,
                .cwd = s->cwd,
                .fds = { fds[0] < 0 ? s->null : fds[0], fds[1], fds[2] },
                .pass = s->pass,
                .apart = s->contain->pidns.keeper,
                .node = s->binding ? (int)s->binding->node : NUMA_UNKNOWN,
                .place = place_prepared,
                .setup = s,
        };
        int report[2];
        pid_t pid;

        if (!warm_has_slots(s->warm) || pipe2(report, O_CLOEXEC) < 0)
                return false;
        rank.report = report[1];
        pid = warm_take(s->warm, &rank);
        fd_close(report[1]);
        if (!pid)
                fd_close(report[0]);
        else
                *ret = (struct spawning){ .pid = pid,
                                          .fd = report[0],
                                          .path = strchr(s->argv->v[0], '/')
                                                          ? NULL
                                                          : strv_env_get(s->env, "PATH") };
        return pid;
}

struct worker *worker_start(const struct worker_setup *s, struct error *err)
{
        int ours[3] = { -1, -1, -1 }, theirs[3] = { -1, -1, -1 };
        struct worker *w = xcalloc(1, sizeof(*w));
        const struct launch_terminal *terminal = launch_order_terminal(s->order, s->rank);
        struct worker_child child = { s, -1 };
        struct spawn spawn = {
                .argv = s->argv->v,
                .env = s->env->v,
                .cwd = s->cwd,
                .pass = s->pass,
                .cgroup = MAX(s->contain->cgroup.folder, 0),
                .enter = enter_worker,
                .enter_ctx = &child,
        };
        int r;

        w->rank = s->rank;
        w->program = xstrdup(s->argv->v[0]);
        w->cwd = xstrdup(s->cwd ? s->cwd : "");
        w->spawning.fd = -1;
        r = terminal ? open_rank_terminal(ours, theirs, terminal)
                     : open_pipes(ours, theirs, is_fed(s));
        if (r == 0)
                r = attach_streams(w, s, ours);
        if (r < 0) {
                err_set(err, -r, "cannot make pipes for a process: %s", strerror(-r));
        } else {
                memcpy(spawn.fds, theirs, sizeof(spawn.fds));
                if (theirs[0] < 0)
                        spawn.fds[0] = s->null >= 0 ? s->null : SPAWN_NULL;
                child.terminal = terminal ? theirs[0] : -1;
                if (!take_prepared(&w->spawning, s, theirs))
                        r = spawn_begin(&w->spawning, &spawn, err);
        }
        w->pid = w->spawning.pid;
        /* spawn_confirm() needs these texts after those of @s are gone. */
        w->spawning.program = w->program;
        w->spawning.cwd = w->cwd;
        w->spawning.path = w->path = w->spawning.path ? xstrdup(w->spawning.path) : NULL;
        for (int i = 0; i < 3; i++) {
                fd_close(ours[i]);
                fd_close(theirs[i]);
        }
        if (r < 0) {
                worker_destroy(w);
                return NULL;
        }
        return w;
}

int worker_confirm(struct worker *w, int ms, enum spawn_step *ret_step, struct error *err)
{
        int r;

        if (!spawn_wait(&w->spawning, ms))
                return 0;
        r = spawn_confirm(&w->spawning, ret_step, err);
        if (r < 0)
                return r;
        w->started = true;
        worker_each_output(w, stream_resume);
        return 1;
}

void worker_destroy(struct worker *w)
{
        stream_close(w->out[0]);
        stream_close(w->out[1]);
        stdin_writer_close(w->in);
        fd_close(w->spawning.fd);
        pids_finish(&w->programs);
        pids_finish(&w->told);
        free(w->program);
        free(w->cwd);
        free(w->path);
        free(w);
}

void worker_signal(const struct worker *w, int signo)
{
        /* Before exec() the process may not lead its group yet. The program may run, and have
         * children, before the agent knows of it. */
        if (!w->reaped && kill(-w->pid, signo) < 0 && !w->started)
                kill(w->pid, signo);
}

void worker_resize(struct worker *w, const struct launch_terminal *to)
{
        const struct winsize size = { .ws_row = (unsigned short)to->rows,
                                      .ws_col = (unsigned short)to->columns };

        /* The kernel sends SIGWINCH to the foreground group. */
        if (w->has_terminal && w->in && w->in->fd >= 0)
                ioctl(w->in->fd, TIOCSWINSZ, &size);
}

void worker_stdin(struct worker *w, const void *data, size_t len)
{
        if (w->in)
                stdin_writer_push(w->in, data, len);
}

void worker_credit(struct worker *w, uint8_t stream, uint32_t bytes)
{
        size_t i = (size_t)(stream - MSG_STDOUT);

        if (i < 2 && w->out[i])
                stream_credit(w->out[i], bytes);
        else if (i < 2)
                /* Bytes of an output that has ended. */
                w->unwritten[i] -= MIN(bytes, w->unwritten[i]);
}

void worker_each_output(struct worker *w, void (*fn)(struct stream *s))
{
        for (int i = 0; i < 2; i++)
                if (w->out[i])
                        fn(w->out[i]);
}

uint64_t worker_heard_ns(const struct worker *w)
{
        uint64_t ns = w->heard_ns;

        for (int i = 0; i < 2; i++)
                if (w->out[i])
                        ns = MAX(ns, w->out[i]->heard_ns);
        return ns;
}
