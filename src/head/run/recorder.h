/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder: writes the records of a run without ever holding up the run
 *
 *   RUN/run.json, events.ndjson, summary.json    as in --log-dir (head/output/run_dir.h)
 *   RUN/trace                                    records of the agents: a line "NUMBER NODE OFFSET
 *                                                ERROR BYTES" before each piece
 *                                                (head/record/trace_log.h)
 *   RUN/hang.txt                                 the stacks of a hang found by --hang-after
 *   RUN/output                                   the output of all ranks, in pieces: a line
 *                                                "MICROSECONDS RANK out|err BYTES" (since the start
 *                                                of hnlaunch), then the bytes and a newline
 *
 * A thread makes the folder and writes; the caller only copies bytes. Output faster than the disk,
 * or than 8 MiB in a second, is left out, and a line "MICROSECONDS - gap BYTES" marks the gap. Rank
 * -1 is hnlaunch itself. When the run has no terminal, nothing is left out, and ranks wait for the
 * disk: a line "MICROSECONDS - detached" marks the beginning.
 *
 * Of long output at least the newest 128 MiB are kept, in output.old and output, and of events 64
 * MiB (head/run/event_file.h). Once a minute the folder is touched. After a failed write the output
 * ends within a piece, and only the summary is still written. The thread also removes the oldest
 * records, a second after the start: shorter runs leave them until there are twice as many as are
 * kept. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum record {
        RECORD_RUN,
        RECORD_EVENTS,
        RECORD_OUTPUT,
        RECORD_TRACE, /* as RECORD_HANG */
        RECORD_SUMMARY,
        RECORD_HANG, /* also below @elsewhere of recorder_create() */
        RECORDS
};

enum { RECORDER_SLOW_MS = 10000 }; /* a slower write is a fault of the file system */

struct recorder;

/* call() is called from the thread. */
struct recorder_room {
        void (*call)(void *ctx);
        void *ctx;
};

/* The number of runs to keep, and the bytes of all of them. */
struct recorder_keep {
        int runs;
        int64_t bytes;
};

/* Records the run @run below @folder from recorder_open() on; earlier records wait in memory. If
 * @elsewhere is a folder (of --log-dir) with the records already, the new folder is a link to
 * @elsewhere, and only output, traces and hangs are written; NULL = no. */
struct recorder *recorder_create(const char *folder, const char *run, const char *elsewhere,
                                 struct recorder_keep keep);
/* Begins to write. Nothing is written, and nothing is made, before. */
void recorder_open(struct recorder *r);
/* Waits until everything put before recorder_open() is written, for RECORDER_SLOW_MS at most. 0; or
 * -errno with @err: the run cannot be recorded. */
int recorder_await(struct recorder *r, struct error *err);
/* Returns whether the run has no records, because the folder or the first of them could not be
 * written: no command finds the run. Does not wait: false as long as nothing was written. */
bool recorder_has_failed(struct recorder *r);

/* Copies bytes of a file; not RECORD_OUTPUT. RECORD_RUN is put as a whole: the last one counts. */
void recorder_put(struct recorder *r, enum record record, const void *data, size_t len);
/* Copies output of a rank (MSG_STDOUT, MSG_STDERR). False, after recorder_stand_alone() only: put
 * no more until room is called, for RECORDER_SLOW_MS at most. NULL does nothing. */
bool recorder_put_output(struct recorder *r, int64_t us, int rank, uint8_t stream, const void *data,
                         size_t len);

/* From now on the records are the only place of the output: no output is left out, unless a write
 * fails or takes RECORDER_SLOW_MS. */
void recorder_stand_alone(struct recorder *r, int64_t us, struct recorder_room room);

/* Waits until all is written, at most @ms. 0; or -errno with @err: something is missing, -ETIME:
 * the file system is too slow. Call once, before recorder_destroy(). */
int recorder_finish(struct recorder *r, int ms, struct error *err);
/* NULL is fine. After -ETIME the memory stays with the thread. */
void recorder_destroy(struct recorder *r);
