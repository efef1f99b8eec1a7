/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/contain/oom.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/proc.h"
#include "base/memory.h"

/* The line "oom_kill N" of a file. */
static bool read_oom_count(struct oom *to, const char *file)
{
        char *count = proc_line(file, "oom_kill ");
        bool found = count && proc_number(count, 0, &to->kills);

        free(count);
        if (found)
                snprintf(to->where, sizeof(to->where), "%s", file);
        return found;
}

/* Reads the count of the agent's own group: the line of /proc/self/cgroup with @hierarchy ends with
 * the group's path below @mount. */
static bool read_own_oom_count(struct oom *to, const char *hierarchy, const char *mount,
                               const char *file)
{
        char *group = proc_line("/proc/self/cgroup", hierarchy);
        char *path = group ? xasprintf("%s%s/%s", mount, group, file) : NULL;
        bool found = path && read_oom_count(to, path);

        free(path);
        free(group);
        return found;
}

void oom_read(struct oom *to, const char *cgroup)
{
        char *file = cgroup ? xasprintf("%s/memory.events", cgroup) : NULL;
        bool found = file && read_oom_count(to, file);

        free(file);
        if (found || read_own_oom_count(to, "0::", "/sys/fs/cgroup", "memory.events") ||
            read_own_oom_count(to, ":memory:", "/sys/fs/cgroup/memory", "memory.oom_control") ||
            read_oom_count(to, "/proc/vmstat"))
                return;
        *to = (struct oom){ 0 };
}
