/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * The child runs in the parent's memory on a stack of its own (CLONE_VM | CLONE_VFORK), as
 * posix_spawn() does it. That is safe because all signals are blocked until the child has put
 * every handler back to its default, and because the child calls nothing but system calls. It
 * reports a failure by writing to struct child, which the parent reads after the child's end.
 * Sanitizers must not instrument it: frames that never return would leave their marks behind.
 */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

enum {
        STACK_SIZE = 64 << 10,
};

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

struct child {
        const struct spawn *s;
        char *const *env;
        const char *path; /* to search, NULL = argv[0] is a path */
        char *candidate;  /* room for any directory of @path, a slash and argv[0] */
        int fds[3];
        pid_t parent;
        sigset_t mask;
        enum spawn_step step;
        int error;
};

IN_CHILD static void fail(struct child *c, enum spawn_step step)
{
        c->step = step;
        c->error = errno;
        _exit(127);
}

IN_CHILD static void reset_signals(struct child *c)
{
        struct sigaction dfl = { .sa_handler = SIG_DFL };
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                sigaction(signo, &dfl, NULL);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                fail(c, SPAWN_FORK);
}

/* Descriptors below 3 are moved away first: they may stand where another one has to go. */
IN_CHILD static void place_fds(struct child *c)
{
        for (int i = 0; i < 3; i++) {
                if (c->fds[i] < 0 || c->fds[i] >= 3)
                        continue;
                c->fds[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, 3);
                if (c->fds[i] < 0)
                        fail(c, SPAWN_FORK);
        }
        for (int i = 0; i < 3; i++)
                if (c->fds[i] >= 0 && dup2(c->fds[i], i) < 0)
                        fail(c, SPAWN_FORK);
}

/* As execvp(): goes on after a missing file, remembers a forbidden one, stops at anything else. */
IN_CHILD static void exec_in_path(struct child *c)
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

IN_CHILD static int child_main(void *arg)
{
        struct child *c = arg;

        if (c->s->session && setsid() < 0)
                fail(c, SPAWN_FORK);
        if (c->s->death_signal) {
                if (prctl(PR_SET_PDEATHSIG, c->s->death_signal) < 0)
                        fail(c, SPAWN_FORK);
                if (getppid() != c->parent)
                        _exit(127); /* it ended before it could be watched */
        }
        place_fds(c);
        if (c->s->cwd && *c->s->cwd && chdir(c->s->cwd) < 0)
                fail(c, SPAWN_CWD);
        reset_signals(c);
        if (c->path)
                exec_in_path(c);
        else
                execve(c->s->argv[0], c->s->argv, c->env);
        fail(c, SPAWN_EXEC);
        return 127;
}

static const char *env_path(char *const *env)
{
        for (; *env; env++)
                if (!strncmp(*env, "PATH=", 5))
                        return *env + 5;
        return DEFAULT_PATH;
}

/* Everything that allocates happens before the child exists. */
static int prepare(struct child *c, const struct spawn *s)
{
        const char *name = s->argv[0];

        *c = (struct child){ .s = s, .env = s->env ? s->env : environ, .parent = getpid() };
        memcpy(c->fds, s->fds, sizeof(c->fds));
        /* Searching for nothing would find, and fail on, the directories themselves. */
        if (*name && !strchr(name, '/')) {
                c->path = env_path(c->env);
                c->candidate = malloc(strlen(c->path) + strlen(name) + 2);
                if (!c->candidate)
                        return -ENOMEM;
        }
        return 0;
}

static int open_null(struct child *c, int *ret_fd)
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

/* The child's pid; it has executed the program or failed by now. -errno: there is no child. */
static pid_t start(struct child *c)
{
        sigset_t all;
        char *stack;
        pid_t pid;

        stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED)
                return -errno;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &c->mask);
        pid = clone(child_main, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
        if (pid < 0)
                pid = -errno;
        pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
        munmap(stack, STACK_SIZE);
        return pid;
}

static int explain(const struct child *c, struct error *err)
{
        const char *program = c->s->argv[0];

        if (c->step == SPAWN_CWD)
                return err_set(err, c->error, "cannot change to directory '%s': %s", c->s->cwd,
                               strerror(c->error));
        if (c->step == SPAWN_EXEC && c->path && c->error == ENOENT)
                return err_set(err, c->error, "cannot find '%s' in PATH", program);
        if (c->step == SPAWN_EXEC)
                return err_set(err, c->error, "cannot execute '%s': %s", program,
                               strerror(c->error));
        return err_set(err, c->error, "cannot start a process for '%s': %s", program,
                       strerror(c->error));
}

int spawn_process(pid_t *ret_pid, const struct spawn *s, enum spawn_step *ret_step,
                  struct error *err)
{
        CLEANUP(fd_closep) int null_fd = -1;
        struct child c;
        pid_t pid = -1;
        int r;

        r = prepare(&c, s);
        if (!r)
                r = open_null(&c, &null_fd);
        if (!r)
                r = pid = start(&c);
        if (r < 0) {
                c.step = SPAWN_FORK;
                c.error = -r;
        } else if (c.step != SPAWN_DONE) {
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        } else {
                *ret_pid = pid;
        }
        free(c.candidate);
        if (ret_step)
                *ret_step = c.step;
        return c.step == SPAWN_DONE ? 0 : explain(&c, err);
}
