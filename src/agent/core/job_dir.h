/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobdir: the job's private folder on this node, mode 0700, for sockets and small files
 */
#pragma once

#include "base/error.h"

struct jobdir {
        char *path; /* NULL = not made */
};

/* Makes hnlaunch-XXXXXX in the first of $XDG_RUNTIME_DIR, /dev/shm, /tmp that takes it. */
int jobdir_create(struct jobdir *d, struct error *err);
/* Removes the folder and the files in it. Nothing happens when it was not made. */
void jobdir_remove(struct jobdir *d);
/* Removes only the files whose name begins with @prefix. */
void jobdir_sweep(const struct jobdir *d, const char *prefix);
/* A malloc'ed path in the folder. */
char *jobdir_path(const struct jobdir *d, const char *name);
