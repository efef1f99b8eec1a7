/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: whole lines of recorded output, as hnlaunch logs prints them
 *
 * A line goes out with its label and time, or as an object of JSON; with --fold once for several
 * ranks, with --tail when it is among the last. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/output/line_fold.h"

struct log_lines {
        int64_t started_us; /* of the run; microseconds since 1970 */
        int n_ranks, n_nodes;
        const char **hosts; /* by rank; lent, NULL = unknown */
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

/* Adds a line without its newline; @us is a time of the run. */
void log_lines_add(struct log_lines *l, int64_t us, int rank, int stream, const char *text,
                   size_t len);
/* Tells that so many bytes of output were not kept here; 0 = what follows was not. */
void log_lines_gap(struct log_lines *l, uint64_t bytes);
/* Ends lines that are held to be folded. */
void log_lines_end_until(struct log_lines *l, int64_t us);
void log_lines_end_all(struct log_lines *l);
/* Prints the lines that were kept. Those that follow go out at once. */
void log_lines_release(struct log_lines *l);

void log_lines_finish(struct log_lines *l);
