/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guard: a process around the agent that cleans up if the agent dies
 *
 * The agent ends its job whenever it can. If it is killed it cannot: then its parent, the guard,
 * which is a subreaper and so inherits all that is left, kills that, sweeps the marked ones, and
 * removes the job's folder and control group. If the guard is killed, the agent gets TERM and ends
 * the job itself. Only now, when nothing is left, does the head see the end of the agent's output.
 *
 * An agent whose loop has not turned for GUARD_LIMIT_MS is killed, too: it hangs in a system call,
 * or was stopped alone. The guard counts its own ticks, not a clock, so the time in which the
 * machine slept or both were stopped is one tick at most. An agent at a debugger's prompt is left
 * alone.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/files/cache_dir.h"

/* Milliseconds in HNLAUNCH_GUARD_LIMIT_MS replace it: tests do not wait for a minute. */
enum { GUARD_LIMIT_MS = 60000 };

/* What is to be cleaned up, and signs of life: memory that both processes see. */
struct guard_notes {
        uint64_t beat_ms;   /* set by the guard: how often the agent counts on */
        atomic_uint beats;  /* by the agent, from its loop */
        atomic_bool unsent; /* the last frame may have gone to the head only in part */
        char dir[256];      /* the job's folder, "" = none */
        char cgroup[1024];  /* "" = none */
        /* Pushed files, see agent/files/file_cache.h. */
        char file_cache_root[1024], file_cache_id[FILE_CACHE_ID + 1],
                run_id[64]; /* root "" = none */
};

/* Runs @agent in a child and returns its exit code, 128 + n for signal n, once nothing is left. */
int guard_run(int (*agent)(struct guard_notes *notes));
