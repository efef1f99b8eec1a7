/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report: failures as messages for the user: grouped, with evidence and the next step
 */
#pragma once

#include <stdint.h>

#include "head/hosts/hosts.h"
#include "head/job/job.h"
#include "head/model/plan.h"
#include "head/term/diag.h"

/* Adds the nodes that did not become ready, a message per kind of failure, hosts folded. The next
 * step is to leave them out where the command @excludes hosts. */
void report_nodes(struct diags *d, const struct job *j, const struct hosts *hosts,
                  const struct options *o, bool excludes);

/* Adds the reason of JOB_NODES_UNFIT from job_open_endpoint(): endpoints that could not be opened
 * (HN403), or, per node, the addresses of rank 0's node that cannot be reached, with interface and
 * reason (HN401). */
void report_endpoint(struct diags *d, const struct job *j, const struct hosts *hosts,
                     const struct options *o);
/* Writes the error of a probe as that report does. */
const char *report_probe_error(uint32_t error);

/* Adds the reason of JOB_NODES_UNFIT from job_push(): nodes without free space (HN235), with
 * damaged content (HN236), or with another error in storing (HN234). @by_command: of `hnlaunch
 * stage`, whose paths are words. */
void report_push(struct diags *d, const struct job *j, const struct hosts *hosts, bool by_command);

/* Adds nodes with InfiniBand whose hard limit of locked memory is too low for RDMA (HN906). */
void report_locked_memory(struct diags *d, const struct job *j, const struct hosts *hosts);

/* Adds where the dumps of PyTorch's flight recorder are, or how to keep them after a failure, and
 * the reason when some are missing (HN909). */
void report_dumps(struct diags *d, const struct job *j);

/* Adds the failure that ended the job: rank, place, last lines of output, consequences. @plan may
 * be NULL when nothing was launched. Adds nothing when all ranks exited 0. */
void report_failure(struct diags *d, const struct job *j, const struct hosts *hosts,
                    const struct plan *plan, const struct options *o);
