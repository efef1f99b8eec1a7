/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run records: the folder of a run's records, opened so that no other user decides what is read
 *
 * The folder may lie below a --log-dir that others may write, so that another one may stand in its
 * place. Records say what `rerun` starts and where a socket is: they are used only from a folder
 * of this user in which no one else may write. Blocking; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Opens the folder @name in @dir (AT_FDCWD), also behind a link. Returns a descriptor, to be closed
 * by the caller; -EPERM with @err: another user owns it or may write there; else -errno with @err.
 */
int run_records_open_at(int dir, const char *name, struct error *err);
/* The same for the run @id among the records of this user. */
int run_records_open(const char *id, struct error *err);

/* Opens a file of the records: a regular one, no link. NULL: there is none (@dir may be -1). */
FILE *run_records_file(int dir, const char *name);
/* Reads a JSON object: a new reference. NULL: the file is missing, or has none (@dir may be -1). */
json_t *run_records_load(int dir, const char *name);
/* Reads the summary. Where a full disk has left none, its members are those of the event run.end.
 * NULL: the run has no end. */
json_t *run_records_summary(int dir);
