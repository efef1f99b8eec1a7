/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oom: whether the kernel's out-of-memory killer was at work where our workers run
 *
 * Counts from the nearest place that counts: the memory.events of a control group (version 2), its
 * memory.oom_control (version 1), else the whole machine's /proc/vmstat.
 */
#pragma once

#include <stdint.h>

struct oom {
        uint64_t kills;
        char where[160]; /* the file, "" = nobody counts */
};

/* @cgroup is the folder of the workers' own group, NULL = none. */
void oom_read(struct oom *to, const char *cgroup);
