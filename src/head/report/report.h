/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report: what went wrong, for the user: grouped, with evidence and the next step
 */
#pragma once

#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/job/job.h"
#include "head/model/plan.h"
#include "head/term/diag.h"

/* All nodes that could not be made ready, one message per kind of failure, hosts folded. */
void report_nodes(struct diags *d, const struct job *j, const struct hosts *hosts);

/* Why job_open_endpoint() gave up with -ENETUNREACH: endpoints that could not be opened (HN403), or
 * which node cannot open which address of rank 0's node over which interface, and why (HN401). */
void report_endpoint(struct diags *d, const struct job *j, const struct hosts *hosts,
                     const struct options *o);

/* Why job_push() gave up with -EIO: nodes without room (HN235), with damaged content (HN236), or
 * that cannot store it for another reason (HN234). */
void report_push(struct diags *d, const struct job *j, const struct hosts *hosts);

/* The failure that ended the job: which rank, where, its last words, what followed. @plan may be
 * NULL when nothing was launched. Adds nothing when all ranks exited 0. */
void report_failure(struct diags *d, const struct job *j, const struct hosts *hosts,
                    const struct plan *plan, const struct options *o);
