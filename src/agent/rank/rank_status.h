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

#include "agent/core/proc.h"
#include "wire/status_msg.h"

/* All processes of one moment, ordered by session, then by pid. */
struct rank_status_scan {
        struct proc_stat *v;
        size_t n, cap;
        uint64_t now_ticks; /* since boot */
        long hz;
};

/* Processes that end meanwhile are left out. Without /proc it is empty. */
void rank_status_scan(struct rank_status_scan *s);
void rank_status_scan_finish(struct rank_status_scan *s);

/* The processes of a worker's session, *@ret_n of them; NULL = none is left. */
const struct proc_stat *rank_status_session(const struct rank_status_scan *s, pid_t worker,
                                            size_t *ret_n);

/* Fills pid, state, started_ms, cpu_percent and channel of @to; state 0 when it has ended. */
void rank_status_look(const struct rank_status_scan *s, pid_t worker, struct node_status_rank *to);
