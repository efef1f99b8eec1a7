/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawn: starts a program in a child process, and tells which step failed
 *
 * The child shares the parent's memory until it executes the program, so the cost does not grow
 * with the parent; the parent sleeps until then and learns the very errno.
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
        bool session;      /* setsid(): own session and process group, both named by the pid */
        int death_signal;  /* sent to the child when the calling thread ends; 0 = none */
};

/*
 * Starts the program with default signal handlers, an empty signal mask and no descriptor of the
 * parent but @fds and those that are not close-on-exec. The descriptors stay with the caller.
 * 0, or the negative errno of the step written to @ret_step (which may be NULL): the sentence in
 * @err names the program or the directory, and no child is left. Thread-safe.
 */
int spawn_process(pid_t *ret_pid, const struct spawn *s, enum spawn_step *ret_step,
                  struct error *err);
