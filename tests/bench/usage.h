/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage: what a process has used so far, read in /proc
 *
 * Source: proc(5), /proc/PID/task/TID/schedstat (its first number), VmHWM of /proc/PID/status.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct usage {
        int64_t cpu_ns;  /* of all its threads that live */
        int64_t peak_kb; /* largest resident set so far */
};

/* A process that is not there has used nothing. */
struct usage usage_of(pid_t pid);
pid_t usage_ancestor(const char *name); /* the nearest with this command name; 0 = none */
int64_t usage_now_ns(void);             /* CLOCK_MONOTONIC */
