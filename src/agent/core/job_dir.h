/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobdir: the job's private folder on this node, mode 0700, for sockets and small files
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/exit_code.h"

struct job_dir {
        char *path;  /* NULL = not made */
        char *store; /* path of the Unix endpoint's socket; also the job's mark, see contain.h */
        char *dumps; /* path of files that ranks are told to write, before the rank */
        char *pipes; /* the same of FIFOs; outside of the folder, NULL = no place for them */
        bool stays;  /* files of ranks could not be removed, which was told */
};

/* Makes hnlaunch-XXXXXX in the first of $XDG_RUNTIME_DIR, /dev/shm, /tmp where that works. */
int job_dir_create(struct job_dir *d, struct error *err);
/* Removes files of ranks, folders with their contents, but follows no link and enters no other
 * mount. Of more than some thousands of files some stay. Returns how many entries are left, 0 =
 * none, with the errno of the first in *ret_error; *ret_removed: the removed ones, but for error
 * files, dumps and the folders pmi and pmix. */
size_t job_dir_clear(struct job_dir *d, size_t *ret_removed, int *ret_error);
/* Removes the folder with all files, in the same way, but not the entries left by the last
 * job_dir_clear(); and the FIFOs. Frees the names. 0, also for a folder never made; or -errno: the
 * folder still exists. */
int job_dir_remove(struct job_dir *d);
