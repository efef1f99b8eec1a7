/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job_dumps: dumps of PyTorch's flight recorder, which nodes send when their ranks have ended
 *
 * With a log folder they become FOLDER/flight-recorder/nccl_trace_rank_<rank> (flight-recorder-N in
 * the attempt after N restarts), a folder that torchfrtrace reads; without one they are only
 * counted. One object per attempt. Main loop's thread only; files are written at once, so that a
 * slow file system slows the nodes down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/intlist.h"
#include "wire/msg.h"

struct job_dumps;

/* @folder: of the run, NULL = none; borrowed. */
struct job_dumps *job_dumps_create(const char *folder, int attempt, size_t n_nodes);
void job_dumps_destroy(struct job_dumps *d); /* NULL is fine */

/* Takes a DUMP of @node. -EPROTO with @err: parts are out of order or too short, or there are too
 * many dumps. A failure here, such as a full disk, is remembered instead. */
int job_dumps_take(struct job_dumps *d, int node, const struct dump *m, struct error *err);
/* The node sends no more; what is incomplete is removed. */
void job_dumps_end(struct job_dumps *d, int node);
/* Whether a part has arrived since the last call. At most 120 calls say so: a node cannot
 * delay the end of the job for ever. */
bool job_dumps_arrive(struct job_dumps *d);

/* The results; NULL gives nothing. Ranks are PyTorch's. */
const char *job_dumps_path(const struct job_dumps *d);              /* NULL = no folder */
const struct intlist *job_dumps_kept(const struct job_dumps *d);    /* in the folder */
const struct intlist *job_dumps_large(const struct job_dumps *d);   /* larger than MSG_MAX_DUMP */
const struct intlist *job_dumps_dropped(const struct job_dumps *d); /* no log folder */
const char *job_dumps_error(const struct job_dumps *d); /* why others are missing, NULL */
