/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oom: detects kills by the kernel's out-of-memory killer
 *
 * Reads the counter nearest to the workers: memory.events of a control group (version 2),
 * memory.oom_control (version 1), else /proc/vmstat of the whole machine.
 */
#pragma once

#include <stdint.h>

struct oom {
        uint64_t kills;
        char where[160]; /* the file, "" = no counter */
};

/* @cgroup is the folder of the workers' own group, NULL = none. */
void oom_read(struct oom *to, const char *cgroup);
