/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job push: brings the files of --push, --stage or --venv to all nodes before the ranks start
 *
 * Between job_connect() and job_open_endpoint(). Nodes of this machine are left out: their ranks
 * use the files in place. Agents with a common file system find each other by a claim in the
 * directory, and a single agent fetches (wire/push_msg.h). Nodes pass the files on to each other
 * where they can; those served from here have a window each, so a slow node delays no other. Main
 * loop's thread only.
 */
#pragma once

#include "head/job/job.h"
#include "head/push/manifest.h"

struct attempt;
struct cluster;
struct heartbeat;
struct job_push;

/* Pushes to every participating node not yet served by the present agent; called again before each
 * attempt, with the manifest of each use (manifest.use) one after the other. @m is borrowed until
 * job_destroy(), @plan for the call; NULL = to all nodes. Runs the loop.
 *
 * JOB_DONE: every node has the files. JOB_NODES_UNFIT: a node cannot store the files, see
 * job_pushed(). JOB_IMPOSSIBLE: a file cannot be read any more; HN_PUSH_CHANGED if the file was
 * changed or removed, else HN_PUSH_UNREADABLE. */
enum job_step job_push(struct job *j, const struct plan *plan, struct manifest *m,
                       struct error *err);
/* Returns the report of a node on the last job_push(), lent; NULL: nothing was pushed there, or no
 * report has come. */
const struct pushed *job_pushed(const struct job *j, size_t node);
/* The same, of what was pushed for a use. */
const struct pushed *job_pushed_as(const struct job *j, enum push_use use, size_t node);
/* Returns what that report is about; PUSH_RANKS before the first. */
enum push_use job_push_use(const struct job *j);

/* --- for the files of the job --- */

/* One for each use. All pointers are borrowed. Returns that of PUSH_RANKS, of which the others
 * hang; functions that take any of them concern all, where they say so. */
struct job_push *job_push_create(struct cluster *c, struct attempt *a, struct heartbeat *h,
                                 const char *run_id);
struct job_push *job_push_of_use(const struct job_push *p, enum push_use use);
enum push_use job_push_last_use(const struct job_push *p); /* that of @p itself */
/* job_push(). */
enum job_step job_push_run(struct job_push *p, const struct plan *plan, struct manifest *m,
                           struct error *err);
/* job_pushed(). */
const struct pushed *job_push_result(const struct job_push *p, size_t node);

/* Takes WANT, TAKEN, CHAINED or PUSHED. 0, or negative with @err: malformed, or not asked for. */
int job_push_take(struct job_push *p, struct node *n, const struct frame *f, struct error *err);

/* Whether files were ever pushed, of any use, and whether @node takes part. */
bool job_push_began(const struct job_push *p);
bool job_push_takes_part(const struct job_push *p, size_t node);
/* Forgets the state of @node, of all uses: another agent will run there. */
void job_push_forget(struct job_push *p, size_t node);

/* Closes the timers of all; job_push_free() after the loop has turned. */
void job_push_close(struct job_push *p);
void job_push_free(struct job_push *p);
