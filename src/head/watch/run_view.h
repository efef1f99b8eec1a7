/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run view: a run as its watchers see it
 *
 * Filled in by the launch, step by step (.socket by requests_open()), and const to the watchers
 * (head/watch/watchers.h).
 */
#pragma once

#include <stdbool.h>

struct events;
struct hosts;
struct job;
struct options;
struct plan;
struct progress;
struct rank_board;
struct run_dir;
struct run_socket;
struct watchers;

struct run_view {
        const struct options *o;
        const char *id, *cwd; /* cwd: of the ranks */
        const struct hosts *hosts;
        const struct plan *plan; /* has no ranks before the nodes are connected */
        struct events *events;
        struct rank_board *ranks;
        struct run_dir *dir; /* NULL = no records; run_dir_recorder() */
        struct progress *progress;
        struct watchers *watchers; /* NULL before watchers_create() */
        struct job *job;           /* NULL before job_create() */
        struct run_socket *socket; /* NULL = none */
        bool color;                /* of messages on stderr */
        bool detached;             /* there is no terminal any longer */
};
