/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_run() forks: the child becomes the agent, the parent waits in sigtimedwait() for SIGCHLD,
 * for TERM, HUP and INT, to pass them on, and for ticks of a quarter of the limit, to compare the
 * agent's heartbeat counter. Notes of the agent lie in shared memory and survive the agent;
 * clean_up_job() works through the notes: control group, remaining children, marked processes,
 * folder, pushed files.
 */
#include "agent/contain/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/contain/contain.h"
#include "agent/core/job_dir.h"
#include "agent/core/proc.h"
#include "agent/files/cache_dir.h"
#include "base/error.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/msg.h"

enum {
        RECHECK_US = 2000,
        RECHECK_MAX_US = 100000,
        TICKS = 4, /* without a sign of life in the limit */
        BEATS = 8, /* of the agent in the limit */
};

struct watch {
        unsigned beats;
        int missed; /* ticks since the last beat */
};

static const int passed_on[] = { SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2 };

/* Waits longer each time, because a debugger or an unreachable file server may delay the end of a
 * process for long. */
static void wait_longer(useconds_t *us)
{
        usleep(*us);
        *us = MIN(*us * 2, (useconds_t)RECHECK_MAX_US);
}

/* Repeats until no child is left, because a killed process may leave children behind. */
static void kill_descendants(void)
{
        struct pids pids = PIDS_INIT;
        useconds_t us = RECHECK_US;

        while (proc_any_child()) {
                proc_children(getpid(), &pids);
                for (size_t i = 0; i < pids.n; i++)
                        kill(pids.v[i], SIGKILL);
                pids_finish(&pids);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        us = RECHECK_US;
                wait_longer(&us);
        }
}

static uint64_t get_limit_ms(void)
{
        const char *text = getenv("HNLAUNCH_GUARD_LIMIT_MS");
        uint64_t ms = text ? strtoull(text, NULL, 10) : 0;

        return ms ? MIN(MAX(ms, (uint64_t)BEATS), (uint64_t)INT32_MAX) : GUARD_LIMIT_MS;
}

/* Writes @frame to the head, and frees it; @text is its content. */
static void send_frame(const struct guard_notes *notes, struct buf *frame, const char *text)
{
        /* The head would take the frame for the rest of another, or for noise of a login script
         * before HELLO. */
        if (notes->unsent)
                fprintf(stderr, "hnlaunch-agent: %s\n", text);
        else if (write(STDOUT_FILENO, buf_data(frame), buf_len(frame)) < 0)
                errno = 0; /* the head has gone, or does not read */
        buf_finish(frame);
}

/* Tells the head why the agent is gone. */
static void send_guard_leaving(const struct guard_notes *notes, const char *fmt, ...) PRINTF(2, 3);
static void send_guard_leaving(const struct guard_notes *notes, const char *fmt, ...)
{
        struct buf out = BUF_INIT;
        char why[64];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        leaving_encode(&out, why);
        send_frame(notes, &out, why);
}

/* Warns the user of files that are left. */
static void send_files_left(const struct guard_notes *notes, const char *what)
{
        struct logline m = { .level = LOG_WARN, .id = HN_FILES_LEFT };
        struct buf out = BUF_INIT;

        snprintf(m.text, sizeof(m.text), "%s", what);
        logline_encode(&out, &m);
        send_frame(notes, &out, m.text);
}

static void remove_job_dir(const struct guard_notes *notes, struct job_dir *dir)
{
        int r = job_dir_remove(dir);
        CLEANUP(free_textp) char *what = NULL;

        if (r == 0)
                return;
        what = xasprintf("cannot remove all files of the job in %s: %s", notes->dir, strerror(-r));
        send_files_left(notes, what);
}

static void remove_pushed_files(const struct guard_notes *notes)
{
        CLEANUP(free_textp) char *what = NULL;

        if (!*notes->file_cache_root)
                return;
        what = file_cache_abandoned(notes->file_cache_root, notes->file_cache_id, notes->run_id);
        if (what)
                send_files_left(notes, what);
}

/* After the end of the agent: ends all processes of the job and removes the files, by the notes
 * that the agent has left in shared memory. */
static void clean_up_job(const struct guard_notes *notes)
{
        struct contain left = CONTAIN_INIT;
        useconds_t us = RECHECK_US;
        struct job_dir dir = { 0 };

        if (*notes->cgroup)
                left.cgroup.path = xstrdup(notes->cgroup);
        if (*notes->dir) {
                dir.path = xstrdup(notes->dir);
                left.mark = dir.store = xasprintf("%s/store", dir.path);
                dir.pipes = *notes->pipes ? xstrdup(notes->pipes) : NULL;
        }
        /* Files go last: living processes would make new ones. */
        cgroup_kill(&left.cgroup);
        kill_descendants();
        while (contain_sweep(&left))
                wait_longer(&us);
        contain_close(&left);
        remove_job_dir(notes, &dir);
        remove_pushed_files(notes);
}

/* Checks the agent after a tick without a signal. */
static void check_heartbeat(pid_t agent, const struct guard_notes *notes, struct watch *w)
{
        unsigned beats = notes->beats;

        if (beats != w->beats || proc_is_traced(agent)) {
                w->beats = beats;
                w->missed = 0;
                return;
        }
        if (++w->missed < TICKS)
                return;
        if (w->missed == TICKS)
                send_guard_leaving(notes, "its guard: no response for %g s",
                                   (double)get_limit_ms() / 1e3);
        kill(agent, SIGKILL);
}

/* Returns the status of the agent. Orphans that die meanwhile are the agent's, which is a subreaper
 * too. */
static int wait_for_agent(pid_t agent, const sigset_t *signals, const struct guard_notes *notes,
                          struct watch *w)
{
        uint64_t ms = get_limit_ms() / TICKS;
        const struct timespec tick = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
        siginfo_t info;
        int status;
        pid_t pid;

        for (;;) {
                if (sigtimedwait(signals, &info, &tick) < 0) {
                        if (errno == EAGAIN)
                                check_heartbeat(agent, notes, w);
                        continue;
                }
                if (info.si_signo != SIGCHLD) {
                        kill(agent, info.si_signo);
                        continue;
                }
                while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                        if (pid == agent)
                                return status;
        }
}

int guard_run(int (*agent)(struct guard_notes *notes))
{
        struct guard_notes *notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid, self = getpid();
        struct watch w = { 0 };
        sigset_t signals, before;
        struct error err;
        int status;

        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
                sigaddset(&signals, passed_on[i]);
        /* Before fork(): sigtimedwait() takes blocked signals only. */
        sigprocmask(SIG_BLOCK, &signals, &before);
        if (notes == MAP_FAILED || contain_begin(&err) < 0 || (pid = fork()) < 0) {
                fprintf(stderr, "hnlaunch-agent: cannot start: %s\n", strerror(errno));
                return EX_OSERR;
        }
        if (!pid) {
                notes->unsent = true; /* until HELLO is written */
                notes->beat_ms = get_limit_ms() / BEATS;
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                /* The guard may have ended before prctl(): no signal would come. */
                if (getppid() != self)
                        _exit(EX_OSERR);
                sigprocmask(SIG_SETMASK, &before, NULL);
                return agent(notes);
        }
        prctl(PR_SET_NAME, "hnlaunch-guard");
        /* Else writing to an agent that has ended would not fail. */
        close(STDIN_FILENO);
        status = wait_for_agent(pid, &signals, notes, &w);
        clean_up_job(notes);
        if (WIFSIGNALED(status) && w.missed < TICKS)
                send_guard_leaving(notes, "killed by signal %d, %s", WTERMSIG(status),
                                   strsignal(WTERMSIG(status)));
        return WIFSIGNALED(status) ? EX_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
