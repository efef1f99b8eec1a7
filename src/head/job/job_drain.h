/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job drain: a run goes on without a host, when its ranks have saved
 *
 * All ranks are told at once, by the key hn/drain/HOST of the store; those of the host also by
 * --drain-signal. They answer by exiting with 0, or by hn_drained(). When the time is over, the
 * ranks of the host are stopped. The attempt ends when all ranks have answered, when a rank or node
 * fails, or some time after the stopped ranks have ended; its cause is CAUSE_DRAIN, and the next
 * attempt begins without the host. A spare host is only marked: it takes
 * no place in later attempts. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct attempt;
struct cause;
struct cluster;
struct job_drain;
struct job_roles;

/* @r NULL: the job has no roles. @end(@ctx) records the cause, and stops the ranks that are left.
 * All pointers are borrowed. */
struct job_drain *job_drain_create(struct cluster *c, struct attempt *a, const struct job_roles *r,
                                   void (*end)(void *ctx, const struct cause *c), void *ctx);
/* Closes the timer; job_drain_free() after the loop has turned. */
void job_drain_close(struct job_drain *d);
void job_drain_free(struct job_drain *d);

/* job_drain_host() and job_drained_by() of job.h. */
int job_drain_order(struct job_drain *d, size_t node, int64_t in_ms, const char *by,
                    struct error *err);
/* What SIGTERM to agents means. */
enum drain_signal {
        DRAIN_NO,  /* the run cannot go on without the host */
        DRAIN_ONE, /* the host is drained */
        DRAIN_ALL, /* all agents got it: it is the end of the run */
};
/* The agent of @node got SIGTERM. */
enum drain_signal job_drain_signalled(struct job_drain *d, size_t node);
/* All ranks have ended: waits until it is known whether all agents got SIGTERM. Returns whether. */
bool job_drain_was_end(struct job_drain *d);
const char *job_drain_by(const struct job_drain *d, size_t node);
/* Whether a host is drained in this attempt. */
bool job_drain_any(const struct job_drain *d);
/* A rank has ended, or called hn_drained(): ends the attempt if a host is drained, and each rank
 * has done one of both. */
void job_drain_rank_ended(struct job_drain *d, int rank, bool well);
void job_drain_answered(struct job_drain *d, int rank);
/* A rank ends, or has ended, for a restart within the attempt: nothing of the old process counts.
 */
void job_drain_rank_again(struct job_drain *d, int rank);
/* A rank or node has failed. True: a host is drained, and the attempt ends for that. */
bool job_drain_failed(struct job_drain *d);
/* Whether each rank has exited with 0 in this attempt, or called hn_drained() before its end. */
bool job_drain_all_saved(const struct job_drain *d);
void job_drain_forget(struct job_drain *d); /* the attempt is over */
