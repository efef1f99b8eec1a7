/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_status: the state of the ranks' processes, by the kernel's account
 *
 * A rank is a whole session: a shell script that starts python is one rank, and users want to know
 * about python. So processor time is the sum of the session, and state and wait channel are the
 * worker's or, while the worker waits for a child, the newest descendant's.
 *
 * /proc is read only on request.
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

/* Takes the snapshot, without processes that end meanwhile. Empty without /proc. */
void rank_status_scan(struct rank_status_scan *s);
void rank_status_scan_finish(struct rank_status_scan *s);

/* Returns the processes of a worker's session, *@ret_n in number; NULL = none is left. */
const struct proc_stat *rank_status_session(const struct rank_status_scan *s, pid_t worker,
                                            size_t *ret_n);

/* Finds the working process of the rank: the worker or, while the worker waits for a child, the
 * newest descendant. Writes the wait channel. NULL = has ended. */
const struct proc_stat *rank_status_busy(const struct rank_status_scan *s, pid_t worker,
                                         char *channel, size_t size);

/* Fills pid, state, started_ms, cpu_percent and channel of @to; state 0 when it has ended. */
void rank_status_look(const struct rank_status_scan *s, pid_t worker, struct node_status_rank *to);

/* Processes below the ranks with another store than the job: a program that starts more ranks gives
 * the new ranks another MASTER_PORT. TORCHELASTIC_USE_AGENT_STORE is inherited, so PyTorch waits
 * there for a store without a server. */

/* Fills @to with a process of the job with another MASTER_PORT than @port in the initial
 * environment; pid stays 0 when none is found. @mark is the value of HN_STORE in the job's
 * processes. Reads the environment of all processes of the user: only on request. */
void other_store_find(struct node_status_other *to, const char *mark, uint32_t port);
