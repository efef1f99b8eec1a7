/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guard: a process around the agent that cleans up if the agent dies
 *
 * Normally the agent ends the job itself. If the agent is killed, the guard, its parent and a
 * subreaper, inherits all remaining processes, kills them, sweeps marked ones, and removes the
 * job's folder and control group. If the guard is killed, the agent gets TERM and ends the job. In
 * both cases the head sees the end of the agent's output only when nothing is left.
 *
 * An agent whose loop has not turned for GUARD_LIMIT_MS is killed, too: either a system call hangs
 * or the agent alone was stopped. The guard counts its own ticks instead of reading a clock, so
 * that a suspended machine, or a stop of both processes, counts as one tick at most. An agent that
 * is stopped in a debugger is left alone.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/files/cache_dir.h"

/* Milliseconds in HNLAUNCH_GUARD_LIMIT_MS replace it: tests do not wait for a minute. */
enum { GUARD_LIMIT_MS = 60000 };

/* What to clean up, and signs of life, in memory shared by both processes. */
struct guard_notes {
        uint64_t beat_ms;   /* set by the guard: how often the agent counts on */
        atomic_uint beats;  /* by the agent, from its loop */
        atomic_bool unsent; /* HELLO, or the last frame, may not have gone to the head as a whole */
        char dir[256];      /* the job's folder, "" = none */
        char pipes[80];     /* path of the job's FIFOs, without the ranks; "" = none */
        char cgroup[1024];  /* "" = none */
        /* Pushed files, see agent/files/file_cache.h. */
        char file_cache_root[1024], file_cache_id[FILE_CACHE_ID + 1],
                run_id[64]; /* root "" = none */
};

/* Runs @agent in a child and returns its exit code, 128 + n for signal n, once nothing is left. */
int guard_run(int (*agent)(struct guard_notes *notes));
