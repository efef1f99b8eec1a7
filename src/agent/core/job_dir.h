/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobdir: the job's private folder on this node, mode 0700, for sockets and small files
 */
#pragma once

#include "base/error.h"

struct job_dir {
        char *path; /* NULL = not made */
};

/* Makes hnlaunch-XXXXXX in the first of $XDG_RUNTIME_DIR, /dev/shm, /tmp that takes it. */
int job_dir_create(struct job_dir *d, struct error *err);
/* Removes the folder and the files in it. Nothing happens when it was not made. */
void job_dir_remove(struct job_dir *d);
/* Removes only the files whose name begins with @prefix. */
void job_dir_sweep(const struct job_dir *d, const char *prefix);
/* A malloc'ed path in the folder. */
char *job_dir_path(const struct job_dir *d, const char *name);
