/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job_push: brings a parcel to all nodes before the ranks start
 *
 * Between job_connect() and job_open_endpoint(). Nodes of this machine are left out: their ranks
 * use the files where they are. Nodes that share a file system are found by their own claims, and
 * one of them fetches (wire/push_msg.h). All nodes are sent to at once, each with a window of its
 * own, so a slow one holds up nobody; a file is read anew for each node and comes out of the page
 * cache for all but the first.
 */
#pragma once

#include "head/job/job.h"
#include "head/push/manifest.h"

/* Again before another attempt: then for nodes whose agent is a new one. @p is borrowed until
 * job_destroy(), @plan for the call. 0: everything is everywhere. JOB_INTERRUPTED. -EHOSTUNREACH: a
 * node was lost. -EIO: a node cannot store it, see job_pushed(). -ESTALE and other errno, with
 * @err: a file cannot be read any more. */
int job_push(struct job *j, const struct plan *plan, struct manifest *p, struct error *err);
/* What a node said; NULL: nothing was pushed there, or it has not answered. */
const struct pushed *job_pushed(const struct job *j, size_t node);
