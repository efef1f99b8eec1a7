/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/usage.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The number behind @name in a file of "Name: number" lines. */
static int64_t field(pid_t pid, const char *name)
{
        char path[64], line[256];
        int64_t found = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0)
                        sscanf(line + strlen(name), " %" SCNd64, &found);
        if (f)
                fclose(f);
        return found;
}

static int64_t cpu_ns(pid_t pid)
{
        struct timespec t;
        clockid_t clock;

        if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
                return 0;
        return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct usage usage_of(pid_t pid)
{
        return (struct usage){ .cpu_ns = cpu_ns(pid), .peak_kb = field(pid, "VmHWM:") };
}

static bool is_named(pid_t pid, const char *name)
{
        char path[64], got[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        f = fopen(path, "re");
        if (f && fgets(got, sizeof(got), f))
                got[strcspn(got, "\n")] = '\0';
        if (f)
                fclose(f);
        return strcmp(got, name) == 0;
}

pid_t usage_ancestor(const char *name)
{
        pid_t pid = getppid();

        while (pid > 0 && !is_named(pid, name))
                pid = (pid_t)field(pid, "PPid:");
        return pid;
}

int64_t usage_now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}
