/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster, on the node: how the processes of the ranks are, as the kernel sees them
 *
 * A rank is its worker's whole session: a shell script that starts python is one rank, and what
 * people want to know is what python does. So processor time is that of all processes of the
 * session, and state and wait channel are those of the worker or, while that waits for a child, of
 * its newest descendant.
 *
 * /proc is read only when somebody asks. Source of the fields: proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/status_msg.h"

struct rank_status_proc {
        pid_t pid, parent, session;
        char state;           /* R S D T t Z X I */
        uint64_t cpu_ticks;   /* user and system */
        uint64_t start_ticks; /* since boot */
};

/* All processes of one moment, ordered by session, then by pid. */
struct rank_status_scan {
        struct rank_status_proc *v;
        size_t n, cap;
        uint64_t now_ticks; /* since boot */
        long hz;
};

/* Processes that end meanwhile are left out. Without /proc it is empty. */
void rank_status_scan(struct rank_status_scan *s);
void rank_status_scan_finish(struct rank_status_scan *s);

/* One line of /proc/PID/stat. False: it is none. */
bool rank_status_parse(struct rank_status_proc *p, const char *line);

/* The processes of a worker's session, *@ret_n of them; NULL = none is left. */
const struct rank_status_proc *rank_status_session(const struct rank_status_scan *s, pid_t worker,
                                                   size_t *ret_n);

/* Fills pid, state, started_ms, cpu_percent and channel of @to; state 0 when it has ended. */
void rank_status_look(const struct rank_status_scan *s, pid_t worker, struct node_status_rank *to);
