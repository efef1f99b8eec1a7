/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guard: a process around the agent that cleans up if the agent dies
 *
 * The agent ends its job whenever it can. If it is killed it cannot: then its parent, the guard,
 * which is a subreaper and so inherits all that is left, kills that, sweeps the marked ones, and
 * removes the job's folder and control group. If the guard is killed, the agent gets TERM and ends
 * the job itself. Only now, when nothing is left, does the head see the end of the agent's output.
 */
#pragma once

#include "agent/stash_place.h"

/* What is to be cleaned up: memory that both processes see. */
struct guard_notes {
        char dir[256];     /* the job's folder, "" = none */
        char cgroup[1024]; /* "" = none */
        /* Pushed files, see agent/stash.h. */
        char stash_root[1024], stash_id[STASH_ID + 1], run_id[64]; /* root "" = none */
};

/* Runs @agent in a child and returns its exit code, 128 + n for signal n, once nothing is left. */
int guard_run(int (*agent)(struct guard_notes *notes));
