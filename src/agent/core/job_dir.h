/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobdir: the job's private folder on this node, mode 0700, for sockets and small files
 */
#pragma once

#include "base/error.h"

struct job_dir {
        char *path;  /* NULL = not made */
        char *store; /* path of the Unix endpoint's socket; also the job's mark, see contain.h */
};

/* Makes hnlaunch-XXXXXX in the first of $XDG_RUNTIME_DIR, /dev/shm, /tmp where that works. */
int job_dir_create(struct job_dir *d, struct error *err);
/* Removes the folder with all files. Does nothing for a folder that was not made. */
void job_dir_remove(struct job_dir *d);
/* Removes only files with names beginning with @prefix. */
void job_dir_sweep(const struct job_dir *d, const char *prefix);
