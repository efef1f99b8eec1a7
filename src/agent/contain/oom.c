/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/contain/oom.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"

enum { FILE_MAX = 1 << 20 };

/* The line "oom_kill N" of a file. */
static bool read_oom_count(struct oom *to, const char *file)
{
        char *text, *rest, *line;
        bool found = false;

        if (fd_read_file(file, FILE_MAX, &text, NULL) < 0)
                return false;
        for (rest = text; !found && (line = strsep(&rest, "\n"));)
                found = strncmp(line, "oom_kill ", 9) == 0 && proc_number(line, 1, &to->kills);
        free(text);
        if (found)
                snprintf(to->where, sizeof(to->where), "%s", file);
        return found;
}

/* Reads the count of the agent's own group: the line of /proc/self/cgroup that begins with
 * @hierarchy, as a path below @mount. */
static bool read_own_oom_count(struct oom *to, const char *hierarchy, const char *mount,
                               const char *file)
{
        char *text, *rest, *line, *at, *path;
        bool found = false;

        if (fd_read_file("/proc/self/cgroup", FILE_MAX, &text, NULL) < 0)
                return false;
        for (rest = text; !found && (line = strsep(&rest, "\n"));) {
                at = strstr(line, hierarchy);
                if (!at)
                        continue;
                path = xasprintf("%s%s/%s", mount, at + strlen(hierarchy), file);
                found = read_oom_count(to, path);
                free(path);
        }
        free(text);
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
