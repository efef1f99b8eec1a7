/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live line: what goes on while the ranks run
 *
 * On a terminal a line at the bottom, of each second, drawn again when output has erased it, below
 * the progress bars of ranks (printer.h) and a line about a slow rank; elsewhere a line a minute,
 * which has the progress bar of the lowest rank that draws one while no rank has told a step.
 * Listens to the event stream. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"

enum { LIVE_LINE_MS = 1000 };

/* A progress bar of a rank, as bytes; len 0 = none. */
struct live_bar {
        const char *text;
        size_t len;
        int rank;
        const char *name; /* "infer:3"; NULL = the job has no roles */
};

/* How far the end of the attempt is. */
struct live_end {
        bool stopping, over; /* the ranks are to end; all have ended */
        int64_t us;          /* since the order to stop */
        int of;              /* ranks of the attempt */
        const char *running; /* those that run, "0-2,5"; NULL = too many to be named */
        bool named;          /* these are "infer:3,trainer:0" */
};

/* Nodes of which nothing is heard (heartbeat.h). */
struct live_silence {
        size_t nodes;
        const char *host; /* one of them */
};

/* What the line tells. */
struct live_facts {
        int64_t us;              /* since the start of hnlaunch */
        int ranks;               /* that run */
        int64_t attempt, spares; /* attempt 0 = the first; spare hosts left after a restart */
        int steps; /* ranks that have reported a step; 0: the next fields mean nothing */
        int64_t least, most, total; /* steps; total 0 = unknown */
        const char *role;           /* whose steps these are; NULL = the job has no roles */
        const char *name;           /* "rank 3" or "infer:3", the rank with the least step */
        const char *host;           /* of that rank */
        const char *slow;           /* a sentence about a slow rank; NULL = none */
        double rate;                /* steps in a second; 0 = unknown */
        uint64_t bytes;             /* of output in the last second */
        int64_t silent_us;          /* since the last output; with steps: since the last step */
        int64_t step_us;            /* mean time of a step; 0 = unknown */
        struct live_silence silent;
        const char *waits;   /* "role b waits for a"; NULL = no role does */
        struct live_bar bar; /* shown without steps */
        struct live_end end;
};

/* Returns the text of the line, behind one about a slow rank, without an end of line, malloc'ed.
 * Pure. */
char *live_line_text(const struct live_facts *f);

struct live_line;

/* Returns the time up to the next facts of the line. `hnlaunch top` reads the facts at the same
 * moment of the loop, so that both agree. */
static inline uint64_t live_line_due_ms(const uv_loop_t *loop)
{
        return LIVE_LINE_MS - uv_now(loop) % LIVE_LINE_MS;
}

/* Begins to show the line: on a terminal (@tty) or not. All pointers are borrowed. */
struct live_line *live_line_create(uv_loop_t *loop, struct events *es, struct rank_board *ranks,
                                   const struct hosts *hosts, bool tty);
/* A rank has written. NULL is fine, here and below. */
void live_line_output(struct live_line *l, int rank, uint8_t stream, const void *data, size_t len);
/* Takes a copy of what is told of a slow rank from now on; NULL = nothing. */
void live_line_slow(struct live_line *l, const char *text);
/* Ends the line; the memory is freed when the loop turns. */
void live_line_close(struct live_line *l);
