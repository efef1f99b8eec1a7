/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: whole lines of recorded output, as hnlaunch logs prints them
 *
 * A line is printed with label and time, or as an object of JSON; with --fold once for several
 * ranks, with --tail only among the last lines. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/model/role_list.h"
#include "head/output/line_fold.h"

struct log_lines {
        int64_t started_us; /* of the run; microseconds since 1970 */
        int n_ranks, n_nodes;
        const char **hosts; /* by rank; lent, NULL = unknown */
        struct role_list roles;
        bool timestamps;
        bool json;
        bool filtered;          /* stdout is a terminal: escapes go */
        bool raw;               /* bytes as the rank wrote them */
        bool untimed;           /* lines have no times */
        bool has_gap;           /* a gap was told */
        struct line_fold *fold; /* NULL = no --fold */
        /* The last lines, a ring; NULL = each goes out at once. */
        struct buf *tail;
        size_t tail_size, tail_n, tail_at;
};

/* Folds lines of so many ranks from now on. */
void log_lines_fold(struct log_lines *l, int n_wanted);
/* Keeps the last @n lines from now on, at least one. */
void log_lines_keep(struct log_lines *l, size_t n);

/* Adds a line without newline; @us is a time of the run. */
void log_lines_add(struct log_lines *l, int64_t us, int rank, int stream, const char *text,
                   size_t len);
/* Tells of so many bytes of output without a record; 0 = all that follow. */
void log_lines_gap(struct log_lines *l, uint64_t bytes);
/* Ends lines held for folding. */
void log_lines_end_until(struct log_lines *l, int64_t us);
void log_lines_end_all(struct log_lines *l);
/* Prints the kept lines. Later lines are printed at once. */
void log_lines_release(struct log_lines *l);

void log_lines_finish(struct log_lines *l);
