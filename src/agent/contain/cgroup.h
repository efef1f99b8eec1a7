/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroup: a control group (version 2) of one attempt's own, where the kernel lets us make one
 *
 * Whoever was started in it, and everything that descends from it, is in it, whatever sessions and
 * parents it gave itself; writing to cgroup.kill ends all of them in one step of the kernel. The
 * group is a child of the one in which the agent itself runs, so nothing is moved that is not ours.
 * Source: Linux, Documentation/admin-guide/cgroup-v2.rst.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct cgroup {
        char *path; /* NULL = there is none */
        int folder; /* open, for struct spawn */
};

#define CGROUP_INIT                                                                                \
        {                                                                                          \
                .folder = -1                                                                       \
        }

/* -EACCES, -EROFS and the like: this node does not let us; -ENOENT: no version 2 here. */
int cgroup_create(struct cgroup *g, struct error *err);
bool cgroup_populated(const struct cgroup *g);
void cgroup_kill(const struct cgroup *g); /* everybody, also groups that workers made in it */
/* Removes it and what is below it, as far as nobody is in there. */
void cgroup_remove(struct cgroup *g);
/* The same by name, for a group whose maker has died. */
void cgroup_kill_path(const char *path);
void cgroup_remove_path(const char *path);
