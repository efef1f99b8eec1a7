/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn: starts a program in a child process, and tells the step that failed
 *
 * In one call, or in two to start many programs at once. Uses fork, which is cheap in a small
 * process like the agent.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum {
        SPAWN_NULL = -1,    /* /dev/null */
        SPAWN_INHERIT = -2, /* the parent's own */
};

enum spawn_step {
        SPAWN_DONE,
        SPAWN_FORK, /* out of processes, memory or descriptors */
        SPAWN_CWD,  /* chdir() failed */
        SPAWN_EXEC, /* execve() failed, or the program is not in PATH */
};

/* All borrowed for the call. */
struct spawn {
        char *const *argv; /* argv[0] without a slash is searched in PATH of @env */
        char *const *env;  /* NULL = the parent's */
        const char *cwd;   /* NULL or "" = the parent's; a relative argv[0] counts from here */
        int fds[3];        /* standard input, output, error: descriptors, SPAWN_NULL or _INHERIT */
        int pass;          /* one more descriptor, under its own number above 2; 0 = none */
        int cgroup; /* folder of a control group (version 2) to be born in; 0 = the parent's */
        /* Called in the child in its session, async-signal-safe; 0, or -errno, which fails as
         * SPAWN_FORK. NULL = nothing. */
        int (*enter)(void *ctx);
        void *enter_ctx;
};

/* As fork(2), for a child without exec(): all signals are blocked in the child until the child
 * installs handlers. The inherited handlers of an event loop write to a shared pipe, so a signal to
 * the child would reach the parent. */
pid_t fork_without_signals(void);

/*
 * Starts the program with default signal handlers (but of signals ignored by this program only
 * since the first child), an empty signal mask, and only @fds, @pass and the parent's descriptors
 * without close-on-exec. The program leads a session and a process group, both named by the pid,
 * and is killed when the calling thread ends. The descriptors stay with the caller. 0, or the
 * negative errno of the step written to @ret_step (which may be NULL): the sentence in @err names
 * the program or the directory, and no child is left; for the codes of SPAWN_EXEC see
 * exec_failure_explain(). Thread-safe.
 */
int spawn_process(pid_t *ret_pid, const struct spawn *s, enum spawn_step *ret_step,
                  struct error *err);

/*
 * The same in two steps, to execute many programs at once, each on its own core: first all
 * spawn_begin(), then spawn_confirm() for each.
 */
struct spawning {
        pid_t pid;
        int fd;                    /* tells the failing step; end of file when there is none */
        const char *program, *cwd; /* of struct spawn */
        const char *path;          /* PATH of its environment, when it is searched; NULL = not */
};

/* Failures of SPAWN_FORK only. The strings of @s are borrowed until spawn_confirm(); between the
 * two no signal may be sent to the child's group, which need not be there yet. */
int spawn_begin(struct spawning *ret, const struct spawn *s, struct error *err);
/* For at most @ms: true when spawn_confirm() will not wait any more. */
bool spawn_wait(const struct spawning *p, int ms);
/* Must follow once. Waits until the program is executed; fails as spawn_process(). */
int spawn_confirm(struct spawning *p, enum spawn_step *ret_step, struct error *err);
