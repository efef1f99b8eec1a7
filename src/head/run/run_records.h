/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run records: the folder of a run's records, opened only if no other user can change them
 *
 * The folder may lie below a --log-dir in which other users may write, and replace the folder by
 * their own. Records name the command of `rerun` and the path of a socket: only a folder of this
 * user, with no write permission for others, is used. Blocking; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Opens the folder @name in @dir (AT_FDCWD), also behind a link. Returns a descriptor, to be closed
 * by the caller; -EPERM with @err: another user is the owner or may write there; else -errno with
 * @err. */
int run_records_open_at(int dir, const char *name, struct error *err);
/* The same for the run @id among the records of this user. */
int run_records_open(const char *id, struct error *err);

/* Opens a file of the records: a regular file, no link. NULL = none (@dir may be -1). */
FILE *run_records_file(int dir, const char *name);
/* Reads a JSON object: a new reference. NULL: the file is missing, or has none (@dir may be -1). */
json_t *run_records_load(int dir, const char *name);
/* Reads the summary. If a full disk has left none, the members are those of the event run.end. NULL
 * = the run has no end. */
json_t *run_records_summary(int dir);
