/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fd owners: the processes with a pipe, a socket or a file lock, by /proc/PID/fd and fdinfo
 *
 * Only processes readable for this process are seen. Source: proc_pid_fd(5): the mode of a link
 * tells how the file was opened; proc_pid_fdinfo(5): the locks of an open file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fd_owners {
        pid_t other;     /* the lowest except @self; 0 = none */
        size_t n_others; /* processes */
        bool self;
};

/* @link: "pipe:[4711]"; @mode: S_IRUSR, S_IWUSR, or 0 = any. When the calling process has the
 * file open, no other owner is looked for: many ranks may wait for the agent, and each search reads
 * all of /proc. */
void fd_owners_find(struct fd_owners *o, pid_t self, const char *link, mode_t mode);
/* Finds the processes with the open file that has a lock: of @pid alone, or of all with 0. @lock:
 * its line in /proc/locks behind the number, up to the newline or NUL. */
void fd_owners_find_lock(struct fd_owners *o, pid_t pid, const char *lock);
