/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn_begin() prepares everything that allocates, opens a pipe that closes on exec, and forks
 * with all signals blocked. The child (child_main()) calls only async-signal-safe functions: own
 * session, death signal, control group, descriptors, directory, signals, exec. A failing step is
 * written to the pipe as a struct spawn_failure; a successful exec closes the pipe. spawn_confirm()
 * reads the pipe: end of file means that the program runs; else it reaps the child and explains the
 * step.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exec_failure.h"
#include "base/exit_code.h"
#include "base/fd.h"

/* For a child whose environment has no PATH. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

struct spawn_child {
        const struct spawn *s;
        char *const *env;
        const char *path; /* to search, NULL = argv[0] is a path */
        char *candidate;  /* space for any directory of @path, a slash and argv[0] */
        int fds[3];
        pid_t parent;
        sigset_t mask;
        int report;  /* a struct spawn_failure goes here */
        bool joins;  /* has to join the control group; else it was born there */
        bool forked; /* has the handlers of the parent; else none */
};

/* The report of the child: shorter than PIPE_BUF, so one write is one read. */
struct spawn_failure {
        enum spawn_step step;
        int error;
};

static pthread_once_t ignored_once = PTHREAD_ONCE_INIT;
static sigset_t ignored_signals; /* of this program, since its first child */

/* Reports errno. Without a report the parent takes the program as started, and the exit code is
 * 126. */
static _Noreturn void fail_child(const struct spawn_child *c, enum spawn_step step)
{
        struct spawn_failure f = { step, errno };

        _exit(write(c->report, &f, sizeof(f)) == sizeof(f) ? EX_NOT_FOUND : EX_NOT_EXECUTABLE);
}

static void find_ignored_signals(void)
{
        struct sigaction sa;

        sigemptyset(&ignored_signals);
        for (int signo = 1; signo < NSIG; signo++)
                if (sigaction(signo, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
                        sigaddset(&ignored_signals, signo);
}

/* Signals ignored by the parent stay ignored in a new process without handlers. */
static void reset_signals(struct spawn_child *c)
{
        struct sigaction dfl = { .sa_handler = SIG_DFL };
        const uint64_t fresh[4] = { 0 }; /* the kernel's struct sigaction */
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++) {
                if (!c->forked && sigismember(&ignored_signals, signo) != 1)
                        continue;
                if (sigaction(signo, &dfl, NULL) < 0) /* libc refuses its own two */
                        syscall(SYS_rt_sigaction, signo, &fresh, NULL, sizeof(uint64_t));
        }
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                fail_child(c, SPAWN_FORK);
}

/* Moves descriptors below 3 away first, because they may be in the place of another. */
static void place_fds(struct spawn_child *c)
{
        for (int i = 0; i < 3; i++) {
                if (c->fds[i] < 0 || c->fds[i] >= 3)
                        continue;
                c->fds[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, 3);
                if (c->fds[i] < 0)
                        fail_child(c, SPAWN_FORK);
        }
        for (int i = 0; i < 3; i++)
                if (c->fds[i] >= 0 && dup2(c->fds[i], i) < 0)
                        fail_child(c, SPAWN_FORK);
}

/* As execvp(): goes on after a missing file, remembers a forbidden one, stops otherwise. */
static void exec_in_path(struct spawn_child *c)
{
        const char *name = c->s->argv[0], *dir = c->path, *end;
        bool forbidden = false;
        char *to;

        for (;; dir = end + 1) {
                for (end = dir, to = c->candidate; *end && *end != ':';)
                        *to++ = *end++;
                if (end > dir)
                        *to++ = '/';
                for (const char *p = name; *p;)
                        *to++ = *p++;
                *to = '\0';
                execve(c->candidate, c->s->argv, c->env);
                if (errno == EACCES)
                        forbidden = true;
                else if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG &&
                         errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT)
                        return;
                if (!*end)
                        break;
        }
        errno = forbidden ? EACCES : ENOENT;
}

/* The steps of the child. Nothing here allocates: a thread of the parent may hold the lock of
 * malloc(). */
static _Noreturn void child_main(struct spawn_child *c)
{
        int r;

        if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                fail_child(c, SPAWN_FORK);
        /* 0: a parent outside of our process namespace. */
        if (getppid() != c->parent && getppid() != 0)
                _exit(EX_NOT_FOUND); /* the parent ended before it could be watched */
        if (c->joins) {
                int procs = openat(c->s->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);

                if (procs < 0 || write(procs, "0", 1) < 0)
                        fail_child(c, SPAWN_FORK);
        }
        if (c->s->enter && (r = c->s->enter(c->s->enter_ctx)) < 0) {
                errno = -r;
                fail_child(c, SPAWN_FORK);
        }
        place_fds(c);
        if (c->s->pass && fcntl(c->s->pass, F_SETFD, 0) < 0)
                fail_child(c, SPAWN_FORK);
        if (c->s->cwd && *c->s->cwd && chdir(c->s->cwd) < 0)
                fail_child(c, SPAWN_CWD);
        reset_signals(c);
        if (c->path)
                exec_in_path(c);
        else
                execve(c->s->argv[0], c->s->argv, c->env);
        fail_child(c, SPAWN_EXEC);
}

/* Finds the PATH of the child and allocates for exec_in_path(), before the fork. */
static int prepare_search(struct spawn_child *c)
{
        c->path = DEFAULT_PATH;
        for (char *const *variable = c->env; *variable; variable++) {
                if (strncmp(*variable, "PATH=", 5) != 0)
                        continue;
                c->path = *variable + 5;
                break;
        }
        /* The whole of PATH is longer than any folder in PATH. */
        c->candidate = malloc(strlen(c->path) + strlen(c->s->argv[0]) + 2);
        return c->candidate ? 0 : -ENOMEM;
}

/* Opens /dev/null at most once; the caller closes *ret_fd. */
static int open_null(struct spawn_child *c, int *ret_fd)
{
        for (int i = 0; i < 3; i++) {
                if (c->fds[i] != SPAWN_NULL)
                        continue;
                if (*ret_fd < 0)
                        *ret_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
                if (*ret_fd < 0)
                        return -errno;
                c->fds[i] = *ret_fd;
        }
        return 0;
}

static int explain_spawn_failure(const struct spawning *p, enum spawn_step step, int error,
                                 struct error *err)
{
        if (step == SPAWN_CWD)
                return err_set(err, error, "cannot change to directory '%s': %s", p->cwd,
                               strerror(error));
        if (step == SPAWN_EXEC)
                return exec_failure_explain(p->program, p->cwd, p->path, error, err);
        return err_set(err, error, "cannot start a process for '%s': %s", p->program,
                       strerror(error));
}

/* Opens the report pipe above the three descriptors that place_fds() fills. The caller closes it,
 * after a failure too. */
static int open_report(int ret_fds[2])
{
        int low;

        if (pipe2(ret_fds, O_CLOEXEC) < 0)
                return -errno;
        low = ret_fds[1];
        if (low >= 3)
                return 0;
        ret_fds[1] = fcntl(low, F_DUPFD_CLOEXEC, 3);
        fd_close(low);
        return ret_fds[1] < 0 ? -errno : 0;
}

pid_t fork_without_signals(void)
{
        sigset_t all, before;
        pid_t pid;
        int error;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid = fork();
        error = errno;
        if (pid)
                pthread_sigmask(SIG_SETMASK, &before, NULL); /* in the parent only */
        errno = error;
        return pid;
}

/* Forks with all signals blocked, until child_main() has reset the handlers. Returns the pid, or
 * -errno. */
static pid_t fork_child(struct spawn_child *c)
{
        struct clone_args args = { .flags = CLONE_CLEAR_SIGHAND |
                                            (c->s->cgroup ? CLONE_INTO_CGROUP : 0),
                                   .exit_signal = SIGCHLD,
                                   .cgroup = (uint64_t)c->s->cgroup };
        sigset_t all;
        pid_t pid;

        pthread_once(&ignored_once, find_ignored_signals);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &c->mask);
        /* As fork(), but the child has no handlers, and is born in the group: moving a process
         * later waits until every processor has passed through the scheduler, which takes
         * milliseconds. Kernels before 5.7 and some sandboxes refuse. */
        pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0) {
                c->joins = c->s->cgroup;
                c->forked = true;
                pid = fork();
        }
        if (!pid)
                child_main(c);
        if (pid < 0)
                pid = -errno;
        pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
        return pid;
}

int spawn_begin(struct spawning *ret, const struct spawn *s, struct error *err)
{
        CLEANUP(fd_closep) int null_fd = -1;
        const char *name = s->argv[0];
        struct spawn_child c = { .s = s, .env = s->env ? s->env : environ, .parent = getpid() };
        struct spawning p = { .program = name, .cwd = s->cwd };
        int fds[2] = { -1, -1 }, r = 0;

        memcpy(c.fds, s->fds, sizeof(c.fds));
        /* Searching for nothing would find, and fail on, the directories themselves. */
        if (*name && !strchr(name, '/'))
                r = prepare_search(&c);
        p.path = c.path;
        if (!r)
                r = open_null(&c, &null_fd);
        if (!r)
                r = open_report(fds);
        c.report = fds[1];
        if (!r)
                r = p.pid = fork_child(&c);
        free(c.candidate);
        fd_close(fds[1]);
        p.fd = fds[0];
        if (r < 0) {
                fd_close(p.fd);
                return explain_spawn_failure(&p, SPAWN_FORK, -r, err);
        }
        *ret = p;
        return 0;
}

bool spawn_wait(const struct spawning *p, int ms)
{
        struct pollfd f = { .fd = p->fd, .events = POLLIN };

        return poll(&f, 1, ms) > 0;
}

int spawn_confirm(struct spawning *p, enum spawn_step *ret_step, struct error *err)
{
        struct spawn_failure f;
        ssize_t n;

        do
                n = read(p->fd, &f, sizeof(f));
        while (n < 0 && errno == EINTR);
        p->fd = fd_close(p->fd);
        /* End of file: execve() has closed the pipe. */
        if (n != sizeof(f))
                f = (struct spawn_failure){ SPAWN_DONE, 0 };
        else
                /* The failed child has ended, or is about to. */
                while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        if (ret_step)
                *ret_step = f.step;
        return f.step == SPAWN_DONE ? 0 : explain_spawn_failure(p, f.step, f.error, err);
}

int spawn_process(pid_t *ret_pid, const struct spawn *s, enum spawn_step *ret_step,
                  struct error *err)
{
        struct spawning p;
        int r;

        if (ret_step)
                *ret_step = SPAWN_FORK; /* for a failure of spawn_begin() */
        r = spawn_begin(&p, s, err);
        if (!r)
                r = spawn_confirm(&p, ret_step, err);
        if (!r)
                *ret_pid = p.pid;
        return r;
}
