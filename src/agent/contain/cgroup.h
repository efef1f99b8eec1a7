/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroup: a control group (version 2) for one attempt, where the kernel permits one
 *
 * Processes started in the group and all their descendants belong to the group, regardless of
 * sessions and parents; a write to cgroup.kill ends all processes in a single step of the kernel.
 * The group is a child of the agent's own group, so no other process is moved. Source: Linux,
 * Documentation/admin-guide/cgroup-v2.rst.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cgroup {
        char *path; /* NULL = there is none */
        int folder; /* open, for struct spawn */
};

#define CGROUP_INIT                                                                                \
        {                                                                                          \
                .folder = -1                                                                       \
        }

/* Creates the group. -EACCES, -EROFS and others: not permitted on this node; -ENOENT: no version
 * 2. */
int cgroup_create(struct cgroup *g, struct error *err);
bool cgroup_populated(const struct cgroup *g);
/* Both accept a group created by another process: only @path counts. */
void cgroup_kill(const struct cgroup *g); /* all processes, also in groups below */
/* Removes the group and the groups below, unless processes are left there. */
void cgroup_remove(struct cgroup *g);

/* Kills by the kernel's out-of-memory killer. The counter nearest to the workers is read:
 * memory.events of a control group (version 2), memory.oom_control (version 1), else /proc/vmstat
 * of the whole machine. */

struct oom {
        uint64_t kills;
        char where[160]; /* the file, "" = no counter */
};

/* @cgroup is the folder of the workers' own group, NULL = none. */
void oom_read(struct oom *to, const char *cgroup);
