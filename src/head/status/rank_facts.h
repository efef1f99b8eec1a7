/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank facts: the head's own knowledge of each rank, without asking the agents
 *
 * A rank that opened libhnlaunch has joined; its progress comes with its requests to the store; its
 * end comes from its node. Ranks at PyTorch's store are known from the agents' answers only, by
 * rank_facts_emit_joined(). Emits the events of joins and progress. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/plan.h"
#include "head/status/rank_table.h"

struct rank_fact;
struct rank_step;

struct rank_facts {
        const struct plan *plan; /* NULL before rank_facts_begin() */
        const struct hosts *hosts;
        struct events *events;
        struct rank_fact *ranks; /* by rank */
        struct rank_step *steps; /* by rank; NULL until a rank reports progress */
        uv_timer_t tell;         /* runs while a report has no event yet */
};

/* Before the first call of all below; rank_facts_close() ends the timer, on the loop's thread. */
void rank_facts_init(struct rank_facts *f, uv_loop_t *loop);
void rank_facts_close(struct rank_facts *f);

/* Begins anew for the ranks of @plan. All pointers are borrowed. */
void rank_facts_begin(struct rank_facts *f, const struct plan *plan, const struct hosts *hosts,
                      struct events *events);
void rank_facts_finish(struct rank_facts *f);

/* @rank has opened libhnlaunch, @ms after the launch. The caller emits the event. */
void rank_facts_joined(struct rank_facts *f, int rank, int64_t ms);
/* Takes a report of progress; @step below 0 is none. At most one event a second follows, the last
 * of them of the last report. @note is copied and cut to 80 bytes. */
void rank_facts_progress(struct rank_facts *f, int rank, int64_t step, int64_t total,
                         const char *note);
/* Takes a step that a line of the rank has told (--progress-re), unless the rank has reported one
 * with hn_progress(). The last lines come behind the end of a rank: each is an event then. */
void rank_facts_line_step(struct rank_facts *f, int rank, int64_t step, int64_t total);
void rank_facts_ended(struct rank_facts *f, int rank);

/* The newest step of the rank. False: none is known. */
bool rank_facts_step(const struct rank_facts *f, int rank, int64_t *ret_step, int64_t *ret_total);

/* Enters all facts in a table for the same plan. The notes are lent until the next report. */
void rank_facts_fill(const struct rank_facts *f, struct rank_table *t);
/* Emits the join of each rank that @t knows at a store and no event has told of. Returns whether
 * there was one. */
bool rank_facts_emit_joined(struct rank_facts *f, const struct rank_table *t);
/* Whether an event has told of each rank that it joined, but for those that ended. */
bool rank_facts_all_told(const struct rank_facts *f);
