/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump_files: dumps of PyTorch's flight recorder, which nodes send after the end of their ranks
 *
 * With a log folder the dumps become FOLDER/flight-recorder/nccl_trace_rank_<rank>
 * (flight-recorder-N in the attempt after N restarts), a folder for torchfrtrace; without a log
 * folder dumps are only counted. One object per attempt. Main loop's thread only; files are written
 * at once, so that a slow file system slows the nodes down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/intlist.h"
#include "wire/msg.h"

struct dump_files;

/* @folder: of the run, NULL = none; borrowed. */
struct dump_files *dump_files_create(const char *folder, int attempt, size_t n_nodes);
/* Makes @path the folder; all dumps together may have @max bytes. */
struct dump_files *dump_files_create_at(const char *path, size_t n_nodes, uint64_t max);
void dump_files_destroy(struct dump_files *d); /* NULL is fine */

/* Takes a DUMP of @node. -EPROTO with @err: parts are out of order or too short, or there are too
 * many dumps. A failure here, such as a full disk, is remembered instead. */
int dump_files_take(struct dump_files *d, int node, const struct dump *m, struct error *err);
/* The node sends no more; what is incomplete is removed. */
void dump_files_end(struct dump_files *d, int node);
/* Whether a part has arrived since the last call. At most 120 calls say so: a node cannot
 * delay the end of the job for ever. */
bool dump_files_arrive(struct dump_files *d);

/* The results; NULL gives nothing. Ranks are PyTorch's. */
const char *dump_files_path(const struct dump_files *d);              /* NULL = no folder */
const struct intlist *dump_files_kept(const struct dump_files *d);    /* in the folder */
const struct intlist *dump_files_large(const struct dump_files *d);   /* larger than MSG_MAX_DUMP */
const struct intlist *dump_files_dropped(const struct dump_files *d); /* no log folder */
const char *dump_files_error(const struct dump_files *d); /* why others are missing, NULL */
