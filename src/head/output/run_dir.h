/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run dir: the records of a run in --log-dir, for people and machines
 *
 *   DIR/<run>/run.json        version, command, plan; no environment values
 *   DIR/<run>/events.ndjson   events as they happen, each in a line (head/run/event_file.h)
 *   DIR/<run>/summary.json    origin, code, rank, host, verdict
 *   DIR/<run>/rank-00013.out  written by the printer
 *   DIR/<run>/flight-recorder/nccl_trace_rank_13  written by dump_files
 *   DIR/latest                link to the run which ended last
 *
 * Folders made here have mode 0700, files 0600; a DIR that was there keeps its mode. --json sends
 * the same event lines to stdout or a file (of the umask's mode) without a folder.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "head/model/rank_board.h"
#include "head/options/options.h"
#include "head/run/recorder.h"

struct run_dir;

/* Creates the directory and begins to listen. @dir NULL: no directory; @json: event lines to
 * @json_file, NULL = stdout; @recorder, NULL = none: keeps the same records, and is taken over.
 * NULL with @err: the directory or a file cannot be written (exit 73). */
struct run_dir *run_dir_create(struct events *es, const char *dir, const char *run_id, bool json,
                               const char *json_file, struct recorder *recorder, struct error *err);
const char *run_dir_path(const struct run_dir *r); /* of the run's directory, NULL = none; lent */
int run_dir_fd(const struct run_dir *r);           /* of that directory, -1 = none; lent */
struct recorder *run_dir_recorder(const struct run_dir *r); /* lent; NULL = none, also for NULL */
void run_dir_open_records(struct run_dir *r);               /* the ranks have been started */

/* What run.json says about the launch alone: run, version, host, pid, started, argv and cwd of the
 * ranks, line (hnlaunch's own command line, without values of -x), the directory where it was
 * given, and the path of its socket. A new reference. @start_ns: the start on clock_ns(). */
json_t *run_dir_describe(const struct options *o, const char *run_id, const char *cwd,
                         int64_t start_ns);

/* Writes run.json. @start_ns as above. 0 or -errno with @err. */
int run_dir_write_run(struct run_dir *r, const struct options *o, const struct hosts *hosts,
                      const struct plan *plan, const char *cwd, int64_t start_ns,
                      struct error *err);
/* Writes summary.json. @o NULL: nothing was started; so are @plan and @ranks then. @hn: number of
 * the first error, 0 = none. @attempts is its list of attempts, NULL = none. */
int run_dir_write_summary(struct run_dir *r, const struct outcome *o, const struct hosts *hosts,
                          const struct plan *plan, const struct rank_board *ranks, int code, int hn,
                          const char *verdict, int64_t us, json_t *attempts, struct error *err);
/* Tells whether an event could not be written to a file: 0, or -errno with @err. */
int run_dir_events_error(const struct run_dir *r, struct error *err);
/* Tells whether DIR/latest could not be replaced when the run ended: 0, or -errno with @err. */
int run_dir_link_error(const struct run_dir *r, struct error *err);
void run_dir_destroy(struct run_dir *r); /* NULL is fine */
