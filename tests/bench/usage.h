/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: what a process has used so far
 *
 * Source: clock_getcpuclockid(3), to the nanosecond; proc(5), VmHWM of /proc/PID/status.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct usage {
        int64_t cpu_ns;  /* of all its threads, ended ones too */
        int64_t peak_kb; /* largest resident set so far */
};

/* A process that is not there has used nothing. */
struct usage usage_of(pid_t pid);
pid_t usage_ancestor(const char *name); /* the nearest with this command name; 0 = none */
int64_t usage_now_ns(void);             /* CLOCK_MONOTONIC */
