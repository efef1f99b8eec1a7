/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank facts: the head's own knowledge of each rank, without asking the agents
 *
 * It stands on the rank board but for the notes of steps. Steps go to the board at once, and become
 * events. Ranks at PyTorch's store are known from the agents' answers only, by
 * rank_facts_emit_joined(). Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"
#include "head/status/rank_table.h"

struct rank_step;

struct rank_facts {
        struct rank_board *ranks; /* NULL before rank_facts_begin() */
        const struct hosts *hosts;
        struct events *events;
        struct rank_step *steps; /* by rank; NULL until a rank reports progress */
        uv_timer_t tell;         /* runs while a report has no event yet */
};

/* Before the first call of all below; rank_facts_close() ends the timer, on the loop's thread. */
void rank_facts_init(struct rank_facts *f, uv_loop_t *loop);
void rank_facts_close(struct rank_facts *f);

/* Begins an attempt without steps. All pointers are borrowed; @ranks listens to @events. */
void rank_facts_begin(struct rank_facts *f, struct rank_board *ranks, const struct hosts *hosts,
                      struct events *events);
void rank_facts_finish(struct rank_facts *f);

/* Takes a report of progress; @step below 0 is none. At most one event a second follows, the last
 * of them of the last report. @note is copied and cut to 80 bytes. */
void rank_facts_progress(struct rank_facts *f, int rank, int64_t step, int64_t total,
                         const char *note);
/* Takes a step that a line of the rank has told (--progress-re), unless the rank has reported one
 * with hn_progress(). The last lines come behind the end of a rank: each is an event then. */
void rank_facts_line_step(struct rank_facts *f, int rank, int64_t step, int64_t total);
/* @rank has ended; before its event. */
void rank_facts_ended(struct rank_facts *f, int rank);

/* Enters all facts in a table for the same plan. The notes are lent until the next report. */
void rank_facts_fill(const struct rank_facts *f, struct rank_table *t);
/* Emits the join of each rank that @t knows at a store and no event has told of. Returns whether
 * there was one. */
bool rank_facts_emit_joined(struct rank_facts *f, const struct rank_table *t);
/* Whether each rank that is not over has its joined event. */
bool rank_facts_all_told(const struct rank_facts *f);
