/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run dir: the records of a run in --log-dir, for people and machines
 *
 *   DIR/<run>/run.json        version, command, plan; no environment values
 *   DIR/<run>/events.ndjson   events as they happen, each in a line
 *   DIR/<run>/summary.json    origin, code, rank, host, verdict
 *   DIR/<run>/rank-00013.out  written by the printer
 *   DIR/<run>/flight-recorder/nccl_trace_rank_13  written by dump_files
 *   DIR/latest                link to the run which ended last
 *
 * Folders made here have mode 0700, files 0600; a DIR that was there keeps its mode. --json sends
 * the same event lines to stdout or a file (of the umask's mode) without a folder.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "head/options/options.h"

struct run_dir;

/* Creates the directory and begins to listen. @dir NULL: no directory; @json: event lines to
 * @json_file, NULL = stdout. NULL with @err: the directory or a file cannot be written (exit 73).
 */
struct run_dir *run_dir_create(struct events *es, const char *dir, const char *run_id, bool json,
                               const char *json_file, struct error *err);
const char *run_dir_path(const struct run_dir *r); /* of the run's directory, NULL = none; lent */

/* Writes run.json. 0 or -errno with @err. */
int run_dir_write_run(struct run_dir *r, const struct options *o, const struct hosts *hosts,
                      const struct plan *plan, const char *cwd, struct error *err);
/* Writes summary.json. @o NULL: nothing was started. @hn: number of the first error, 0 = none. */
int run_dir_write_summary(struct run_dir *r, const struct outcome *o, const struct hosts *hosts,
                          int code, int hn, const char *verdict, int64_t us, struct error *err);
/* Tells whether an event could not be written to a file: 0, or -errno with @err. */
int run_dir_events_error(const struct run_dir *r, struct error *err);
/* Tells whether DIR/latest could not be replaced when the run ended: 0, or -errno with @err. */
int run_dir_link_error(const struct run_dir *r, struct error *err);
void run_dir_destroy(struct run_dir *r); /* NULL is fine */
