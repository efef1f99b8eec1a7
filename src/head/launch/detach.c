/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run may live without its terminal: from its start (--detach), or when the terminal hangs up
 * (--on-hup detach). Then the records have the only copy of the output: ranks that write faster
 * than the disk wait, and a part is left out only when a write has not ended for
 * RECORDER_SLOW_MS. `hnlaunch attach` shows the output.
 *
 * `hnlaunch hold` leaves the terminal in the same way, when its agents are ready.
 *
 * With --detach a child process does the launch. While connecting, the child stays in the
 * terminal's session, so that questions for passwords and Ctrl-C reach it, and leaves the session
 * when all ranks are started. The parent waits for the start, or for the end of the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/launch/launch_private.h"
#include "head/options/program_options.h"
#include "head/output/say.h"
#include "head/run/logind.h"
#include "head/run/recorder.h"

/* The streams of a run without a terminal, or with one that may be lost. */
struct detach {
        struct launch *launch;
        int report;      /* --detach: a byte to the parent when all ranks have been started; -1 */
        bool *started;   /* by rank: has started in this attempt, or need not be waited for */
        int to_start;    /* the other ranks */
        bool has_room;   /* @room and @limit are open handles */
        uv_async_t room; /* the recorder has room again */
        uv_timer_t limit;
        int open; /* handles not yet closed */
};

/* --- output without a terminal ---------------------------------------------------------------- */

static void release_output(struct detach *a)
{
        uv_timer_stop(&a->limit);
        job_release_output(a->launch->run->job);
}

static void on_room(uv_async_t *h)
{
        release_output(h->data);
}

static void on_room_limit(uv_timer_t *t)
{
        release_output(t->data);
}

static void tell_room(void *ctx)
{
        struct detach *a = ctx;

        uv_async_send(&a->room);
}

/* Makes the records the only place of the output, once. */
static void stand_alone(struct detach *a)
{
        struct recorder *r = run_dir_recorder(a->launch->run->dir);
        uv_loop_t *loop = job_loop(a->launch->run->job);

        if (a->launch->run->detached)
                return;
        a->launch->run->detached = true;
        if (!r || uv_async_init(loop, &a->room, on_room) < 0)
                return;
        uv_timer_init(loop, &a->limit);
        a->room.data = a->limit.data = a;
        uv_unref((uv_handle_t *)&a->room);
        a->has_room = true;
        a->open = 2;
        recorder_stand_alone(r, events_now_us(&a->launch->events),
                             (struct recorder_room){ tell_room, a });
}

/* Puts /dev/null in the place of all standard streams, or only of the terminal. */
static void leave_streams(bool all)
{
        CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
                /* isatty() fails with EIO at a terminal that has hung up. */
                if (all || isatty(fd) || errno == EIO)
                        dup2(null, fd);
}

bool detach_waits_for_room(struct launch *l)
{
        struct detach *a = l->streams.detach;

        if (!a || !a->has_room)
                return false;
        /* A disk that stays full or stuck must not hold the ranks for ever. */
        if (!uv_is_active((uv_handle_t *)&a->limit))
                uv_timer_start(&a->limit, on_room_limit, RECORDER_SLOW_MS, 0);
        return true;
}

static void on_hang_up(void *ctx)
{
        struct launch *l = ctx;

        if (l->run->detached)
                return;
        leave_streams(false);
        setsid(); /* fails for the leader of a process group, which has no terminal any longer */
        stand_alone(l->streams.detach);
        say("hnlaunch: the terminal is gone, and the run goes on (--on-hup detach)\n");
}

/* --- --detach --------------------------------------------------------------------------------- */

static pid_t detached_child;

/* The keys of a terminal reach the child as well. */
static void forward_signal(int signo, siginfo_t *info, void *context UNUSED)
{
        if (info->si_code == SI_USER)
                kill(detached_child, signo);
}

/* Waits in the parent until all ranks have been started, or the child has ended. */
static int await_start(struct launch *l, pid_t child, int report)
{
        static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
        struct sigaction forward = { .sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO };
        char id[sizeof(l->config->run_id)] = "";
        int status = 0;
        ssize_t n;

        detached_child = child;
        for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
                sigaction(forwarded[i], &forward, NULL);
        do
                n = read(report, id, sizeof(id) - 1);
        while (n < 0 && errno == EINTR);
        if (n > 0) {
                /* A script reads the id from standard output. */
                if (!isatty(STDOUT_FILENO))
                        printf("%s\n", id);
                if (!l->o->quiet && l->o->command == COMMAND_HOLD)
                        say("hnlaunch: hold %s is ready: runs on the same hosts start on it; "
                            "hnlaunch release %s ends it\n",
                            id, id);
                else if (!l->o->quiet)
                        say("hnlaunch: run %s goes on without this terminal: hnlaunch attach %s\n",
                            id, id);
                return 0;
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
        /* The child has ended before all ranks were started: end in the same way, for the shell. */
        if (!WIFSIGNALED(status))
                return WEXITSTATUS(status);
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
        return EX_SIGNAL + WTERMSIG(status);
}

/* An attempt begins, with the ranks of the plan. */
static void await_all_ranks(struct detach *a)
{
        free(a->started);
        a->to_start = a->launch->plan.world_size;
        a->started = xcalloc((size_t)a->to_start, sizeof(*a->started));
}

/* A rank may start several times in an attempt (--restart-scope), and counts once. */
static void count_start(struct detach *a, int rank)
{
        a->to_start -= !a->started[rank];
        a->started[rank] = true;
}

/* Ranks of a role that waits for another one start later. */
static void leave_out_role(struct detach *a, const char *role)
{
        const struct plan *plan = &a->launch->plan;

        for (int i = 0; i < plan->world_size; i++)
                if (!strcmp(options_role(a->launch->o, (size_t)plan->ranks[i].program)->name, role))
                        count_start(a, i);
}

/* From here on this process outlives parent and terminal. */
static void leave_terminal(struct launch *l)
{
        struct detach *a = l->streams.detach;

        prctl(PR_SET_PDEATHSIG, 0);
        setsid();
        if (write(a->report, l->config->run_id, strlen(l->config->run_id)) < 0)
                log_line(LOG_INFO, "the hnlaunch that waits was killed, this one goes on");
        fd_close(a->report);
        a->report = -1;
        leave_streams(true);
}

void detach_hold(struct launch *l)
{
        leave_terminal(l);
}

static void on_launch_event(void *ctx, const struct event *e)
{
        struct launch *l = ctx;
        struct detach *a = l->streams.detach;

        if (!a || a->report < 0)
                return;
        if (e->kind == EVENT_RUN_START || e->kind == EVENT_RESTART || e->kind == EVENT_RUN_SHRUNK)
                await_all_ranks(a);
        if (e->kind == EVENT_ROLE_WAITS)
                leave_out_role(a, e->brief);
        if (e->kind != EVENT_RANK_STARTED)
                return;
        count_start(a, e->rank);
        if (a->to_start <= 0)
                leave_terminal(l);
}

static void warn_of_logind(struct launch *l)
{
        if (logind_ends_processes())
                diag_help(diag_warn(&l->diags, HN_LOGIND,
                                    "logind ends this run when you log out "
                                    "(KillUserProcesses=yes in logind.conf)"),
                          "loginctl enable-linger, then systemd-run --user --scope hnlaunch ...");
}

bool detach_begin(struct launch *l, int *ret_code)
{
        enum alloc_from from = alloc_find(environ);
        bool holds = l->o->command == COMMAND_HOLD, leaves = l->o->detach || holds;
        struct detach *a;
        int report[2] = { -1, -1 };
        struct error err;
        pid_t pid = 0;

        if (!holds && (l->o->command != COMMAND_RUN || (!leaves && l->o->on_hup == HUP_STOP)))
                return false;
        if (l->o->detach && !holds && from != ALLOC_NONE) {
                diag_help(
                        diag_add(&l->diags, HN_DETACH_IN_ALLOCATION, EX_USAGE,
                                 "--detach inside an allocation of %s", alloc_title(from)),
                        "the allocation ends with its script, and the run with it: leave --detach "
                        "out");
                *ret_code = verdict_nothing_started(l, EX_USAGE);
                return true;
        }
        warn_of_logind(l);
        if (leaves) {
                /* Otherwise both processes would write what stdio still holds. */
                fflush(NULL);
                pid = pipe2(report, O_CLOEXEC) < 0 ? -1 : fork();
        }
        if (pid < 0) {
                err_set(&err, errno, "cannot start a process for %s: %s",
                        holds ? "the hold" : "--detach", strerror(errno));
                fd_close(report[0]);
                fd_close(report[1]);
                *ret_code = verdict_nothing_because(l, HN_NO_FORK, EX_FAILED, &err);
                return true;
        }
        if (pid) {
                fd_close(report[1]);
                diags_finish(&l->diags); /* the child prints the messages */
                *ret_code = await_start(l, pid, report[0]);
                fd_close(report[0]);
                return true;
        }
        fd_close(report[0]);
        a = xcalloc(1, sizeof(*a));
        *a = (struct detach){ .launch = l, .report = report[1] };
        l->streams.detach = a;
        if (!holds)
                l->config->hung_up = on_hang_up;
        if (leaves) {
                /* A killed parent takes a launch along until all ranks are started: see
                 * on_launch_event(). */
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (!holds)
                        events_listen(&l->events, on_launch_event, l);
        }
        return false;
}

void detach_records(struct launch *l)
{
        if (l->o->detach)
                stand_alone(l->streams.detach);
}

static void on_detach_closed(uv_handle_t *h)
{
        struct detach *a = h->data;

        if (--a->open == 0)
                free(a);
}

void detach_finish(struct launch *l)
{
        struct detach *a = l->streams.detach;

        if (!a)
                return;
        fd_close(a->report);
        free(a->started);
        l->streams.detach = NULL;
        if (!a->has_room) {
                free(a);
                return;
        }
        uv_close((uv_handle_t *)&a->room, on_detach_closed);
        uv_close((uv_handle_t *)&a->limit, on_detach_closed);
}
