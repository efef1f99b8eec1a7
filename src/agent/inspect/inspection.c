/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inspector runs in a forked child, because stack tools and /proc may take seconds or hang. The
 * child replaces all descriptors but the pipe by /dev/null, so that the links of the agent end
 * with the agent, and dies with the agent. The agent looks at the pipes by a timer, every LOOK_MS,
 * and hands whole frames on unchanged; a full uplink leaves the rest in the pipe, which stops the
 * child.
 *
 * With --contain pidns the child lives in the namespace of the ranks, with the agent's /proc: the
 * numbers of processes in orders, answers and /proc are the agent's, and proc_local() translates
 * for signals and tools.
 */
#include "agent/inspect/inspection.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spawn.h"

/* Kinds: processes and files (0), RAS (1), flight recorders (2), checks (3). Each has one child. */
enum { LOOK_MS = 10, INSPECTION_KINDS = 4, INSPECTION_CHECK = 3 };

struct inspection_child {
        uv_timer_t timer; /* looks at the pipe while a child runs */
        struct uplink *up;
        struct buf in; /* the beginning of an answer */
        pid_t pid;     /* 0 = no child runs */
        int fd;        /* of the answers, -1 = at the end */
};

struct inspection {
        struct inspection_child child[INSPECTION_KINDS];
};

/* --- in the child ----------------------------------------------------------------------------- */

/* Replaces all descriptors but @to by /dev/null: the links of the agent must end with the agent.
 * The numbers stay taken, because libuv closes some of them again in each further child
 * (pthread_atfork). */
static void keep_only_answers(int to)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        DIR *fds = opendir("/proc/self/fd");
        struct dirent *entry;

        while (null >= 0 && fds && (entry = readdir(fds))) {
                int fd = (int)strtol(entry->d_name, NULL, 10);

                if (*entry->d_name != '.' && fd != to && fd != null && fd != dirfd(fds))
                        dup3(null, fd, O_CLOEXEC);
        }
        if (fds)
                closedir(fds);
        fcntl(to, F_SETFL, 0); /* blocking */
}

static void reset_inspector_signals(void)
{
        struct sigaction dfl = { .sa_handler = SIG_DFL };
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                sigaction(i, &dfl, NULL);
        /* A lost agent is seen as EPIPE. */
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What the child does. */
struct inspection_work {
        void (*run)(const void *ctx, int to);
        const void *ctx;
};

static _Noreturn void be_inspector(const struct inspection_work *work, int to, pid_t parent)
{
        /* The sink writes into the uplink, which only the agent may do. */
        log_set_sink(NULL, NULL);
        reset_inspector_signals();
        keep_only_answers(to);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        /* The agent may have ended before prctl(): no signal would come. 0: the agent is outside of
         * the process namespace of its children, which ends with the agent. */
        if (getppid() == parent || getppid() == 0)
                work->run(work->ctx, to);
        _exit(0);
}

struct inspection_args {
        const struct inspect_order *o;
        const struct inspector_rank *ranks;
        size_t n;
        const struct inspector_paths *paths;
};

static void run_inspector(const void *ctx, int to)
{
        const struct inspection_args *a = ctx;

        inspector_run(a->o, a->ranks, a->n, a->paths, to);
}

/* --- in the agent ----------------------------------------------------------------------------- */

/* Hands whole frames on. */
static void pass_answers(struct inspection_child *c)
{
        struct frame f;
        struct error err;

        while (frame_peek(&c->in, &f, &err) > 0) {
                size_t len = FRAME_HEADER + f.len;

                buf_append(&c->up->out, buf_data(&c->in), len);
                buf_consume(&c->in, len);
        }
}

/* Passes answers of the child on, as far as the uplink has room. */
static void on_inspection_look(uv_timer_t *timer)
{
        struct inspection_child *c = timer->data;
        ssize_t n = -1;
        void *room;

        while (c->fd >= 0 && !uplink_full(c->up) && (room = buf_reserve(&c->in, 4096)) &&
               (n = read(c->fd, room, 4096)) > 0)
                buf_advance(&c->in, (size_t)n);
        if (n == 0)
                c->fd = fd_close(c->fd);
        pass_answers(c);
        /* The end of the pipe: nothing more can come. */
        if (c->fd < 0)
                uv_timer_stop(timer);
}

struct inspection *inspection_create(uv_loop_t *loop, struct uplink *up)
{
        struct inspection *s = xcalloc(1, sizeof(*s));

        for (int i = 0; i < INSPECTION_KINDS; i++) {
                struct inspection_child *c = &s->child[i];

                *c = (struct inspection_child){ .up = up, .fd = -1 };
                uv_timer_init(loop, &c->timer);
                c->timer.data = c;
        }
        return s;
}

/* SIGTERM ends the child with its tools. A child that takes longer is not waited for: the end of an
 * attempt kills all children. */
static void stop_inspector(struct inspection_child *c)
{
        if (c->pid)
                kill(c->pid, SIGTERM);
        c->pid = 0;
        c->fd = fd_close(c->fd);
        buf_finish(&c->in);
        uv_timer_stop(&c->timer);
}

static void start_child(struct inspection_child *c, const struct inspection_work *work)
{
        pid_t parent = getpid();
        int fds[2];

        /* A new order replaces the running order of the same kind. */
        stop_inspector(c);
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return;
        c->pid = fork_without_signals();
        if (!c->pid)
                be_inspector(work, fds[1], parent);
        fd_close(fds[1]);
        if (c->pid < 0) {
                c->pid = 0;
                fd_close(fds[0]);
                return;
        }
        c->fd = fds[0];
        uv_timer_start(&c->timer, on_inspection_look, LOOK_MS, LOOK_MS);
}

void inspection_start(struct inspection *s, const struct inspect_order *o,
                      const struct inspector_rank *ranks, size_t n,
                      const struct inspector_paths *paths)
{
        int kind = o->what == INSPECT_RAS ? 1 : o->what == INSPECT_FLIGHT ? 2 : 0;
        const struct inspection_args args = { o, ranks, n, paths };

        start_child(&s->child[kind], &(struct inspection_work){ run_inspector, &args });
}

void inspection_start_check(struct inspection *s, void (*run)(const void *ctx, int to),
                            const void *ctx)
{
        start_child(&s->child[INSPECTION_CHECK], &(struct inspection_work){ run, ctx });
}

void inspection_stop(struct inspection *s)
{
        for (int i = 0; i < INSPECTION_KINDS; i++)
                stop_inspector(&s->child[i]);
}

void inspection_reaped(struct inspection *s, pid_t pid)
{
        for (int i = 0; i < INSPECTION_KINDS; i++)
                if (s->child[i].pid == pid)
                        s->child[i].pid = 0;
}

void inspection_close(struct inspection *s)
{
        inspection_stop(s);
        for (int i = 0; i < INSPECTION_KINDS; i++)
                uv_close((uv_handle_t *)&s->child[i].timer, NULL);
}

void inspection_destroy(struct inspection *s)
{
        free(s);
}
