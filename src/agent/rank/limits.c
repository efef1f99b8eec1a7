/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the login are read once, before the agent raises its own, and workers are measured
 * against these. Hard limits stay: no privilege is needed here.
 */
#include "agent/rank/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/macros.h"

static struct rlimit files, memory; /* of the login */
static bool known_files, known_memory;

void limits_raise(void)
{
        struct rlimit all;

        known_memory = getrlimit(RLIMIT_MEMLOCK, &memory) == 0;
        known_files = getrlimit(RLIMIT_NOFILE, &files) == 0;
        /* For the agent itself: all that is allowed, as each rank costs several descriptors. */
        all = (struct rlimit){ files.rlim_max, files.rlim_max };
        if (known_files)
                setrlimit(RLIMIT_NOFILE, &all);
}

/* The soft limit of a worker: never below that of the login. */
static rlim_t worker_files(void)
{
        return MAX(files.rlim_cur, MIN(files.rlim_max, (rlim_t)LIMITS_FILES_MAX));
}

void limits_raise_worker(void)
{
        struct rlimit own = { known_files ? worker_files() : 0, files.rlim_max };

        if (known_files)
                setrlimit(RLIMIT_NOFILE, &own);
        own = (struct rlimit){ memory.rlim_max, memory.rlim_max };
        /* InfiniBand and pinned memory of GPUs need locked pages, and the soft limit of a login is
         * often small. */
        if (known_memory && memory.rlim_cur != memory.rlim_max)
                setrlimit(RLIMIT_MEMLOCK, &own);
}

static void format_limit(char *to, size_t size, rlim_t limit)
{
        if (limit == RLIM_INFINITY)
                snprintf(to, size, "unlimited");
        else
                snprintf(to, size, "%" PRIuMAX, (uintmax_t)limit);
}

void limits_describe(char *to, size_t size)
{
        bool more_files = known_files && worker_files() != files.rlim_cur,
             more_memory = known_memory && memory.rlim_max != memory.rlim_cur;
        char now[32], before[32], locked[96] = "";

        if (more_memory) {
                format_limit(now, sizeof(now), memory.rlim_max);
                format_limit(before, sizeof(before), memory.rlim_cur);
                snprintf(locked, sizeof(locked), "bytes of locked memory %s (were %s)", now,
                         before);
        }
        format_limit(now, sizeof(now), known_files ? worker_files() : 0);
        format_limit(before, sizeof(before), files.rlim_cur);
        if (more_files)
                snprintf(to, size, "open files %s (were %s)%s%s", now, before,
                         more_memory ? ", " : "", locked);
        else
                snprintf(to, size, "%s", locked);
}
