/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log hosts: the host of each rank at a time of the run, from the events rank.started
 *
 * Events are read as far as they are needed, also while the run writes them. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Rank @rank has been started on @host at @us. */
struct log_start {
        int64_t us;
        int rank;
        char *host;
};

struct log_hosts {
        int dir;               /* borrowed */
        FILE *events;          /* NULL = there are none */
        char *last;            /* line of the last start that was read; NULL = none */
        struct log_start next; /* read, and not yet reached; host NULL = none */
        const char **now;      /* by rank; borrowed from the caller's table */
        char **own;            /* by rank: hosts of later attempts; NULL = the first one */
        int n_ranks;
};

/* Follows the ranks from @now, lent, which has the hosts of the first attempt. @dir: the records,
 * also lent. */
void log_hosts_open(struct log_hosts *h, int dir, const char **now, int n_ranks);
void log_hosts_finish(struct log_hosts *h);

/* Reads the next start of a rank into .next. False: there is none yet. */
bool log_hosts_read(struct log_hosts *h);
/* Returns the rank of the next start on another host until @us; -1 = there is none. Its host in
 * @now is still the old one: log_hosts_move() sets the new one. */
int log_hosts_find_move(struct log_hosts *h, int64_t us);
void log_hosts_move(struct log_hosts *h);
