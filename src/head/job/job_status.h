/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job status: which ranks have joined and which wait, as told by Ctrl-\ and by warnings
 *
 * Asks the agents when the user asks, when ranks have not joined within --start-timeout, and when a
 * rank has waited in the store for --wait-warn. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/intlist.h"
#include "head/term/diag.h"
#include "head/why/why.h"

struct attempt;
struct cluster;
struct job_config;
struct job_status;
struct node_status;
struct rank_table;

/* All pointers are borrowed. */
struct job_status *job_status_create(struct cluster *c, struct attempt *a,
                                     const struct job_config *config);
/* Closes the timers; job_status_free() after the loop has turned. */
void job_status_close(struct job_status *s);
void job_status_free(struct job_status *s);

/* The ranks were started: the clocks begin, anew for another attempt. */
void job_status_launched(struct job_status *s);
/* Ends a round of questions without the answers still to come. No rank runs, and the plan is about
 * to change: the table of the round has the ranks of the plan as it is. */
void job_status_settle(struct job_status *s);
void job_status_output(struct job_status *s, int rank); /* a rank has written */
void job_status_joined(struct job_status *s, int rank);
void job_status_ended(struct job_status *s, int rank);
void job_status_progress(struct job_status *s, int rank, int64_t step, int64_t total,
                         const char *note);
/* A line of the rank has told a step; one from hn_progress() wins. */
void job_status_line_step(struct job_status *s, int rank, int64_t step, int64_t total);

/* A look that a user has asked for begins. */
void job_status_ask(struct job_status *s);
/* Ranks were ordered to dump, or the look is over: PyTorch writes lines about a dump, which are no
 * signs of life. */
void job_status_dumping(struct job_status *s, bool on);
/* A look has found a hang in @worlds; @tell: one that config.why.quiet() has begun. False: a rank
 * there has done something meanwhile, the ranks do not run, or the hang is told already. */
bool job_status_hangs(struct job_status *s, const struct intlist *worlds, bool tell);
/* Returns how a look takes the ranks of a world. @unasked: one that config.why.quiet() begins. */
enum why_share job_status_share(const struct job_status *s, int world, bool unasked);
/* Whether the hang that was found last goes on. */
bool job_status_still_hangs(const struct job_status *s);
/* Returns for how long it goes on, from the last sign of life on, in milliseconds; 0 = no hang. */
int64_t job_status_hang_ms(const struct job_status *s);

/* Takes the answer of @node; late answers are ignored. False: to a request never made. */
bool job_status_take(struct job_status *s, int node, const struct node_status *answer);

/* Shows all ranks, when all nodes have answered or a second is over. Before the launch: shows the
 * nodes being connected. */
void job_status_show(struct job_status *s);
/* Shows all ranks; then, unless all have ended meanwhile, @done(@ctx). */
void job_status_show_last(struct job_status *s, void (*done)(void *ctx), void *ctx);

/* Hands the table of all ranks to @take, when all nodes have answered or a second is over. False:
 * no ranks run. */
bool job_status_take_table(struct job_status *s,
                           void (*take)(void *ctx, const struct rank_table *t), void *ctx);

/* Moves the message of a job ended by missing ranks (CAUSE_JOIN) to the end of @to. */
void job_status_move_last(struct job_status *s, struct diags *to);
