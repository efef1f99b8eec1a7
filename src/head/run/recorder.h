/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder: writes the records of a run, without ever holding the run up
 *
 *   RUN/run.json, events.ndjson, summary.json    as in --log-dir (head/output/run_dir.h)
 *   RUN/trace                                    what the agents have recorded: a line "NUMBER NODE
 *                                                OFFSET ERROR BYTES" before each piece
 *                                                (head/record/trace_log.h)
 *   RUN/hang.txt                                 the stacks of a hang that --hang-after has found
 *   RUN/output                                   what all ranks have written, in pieces: a line
 *                                                "MICROSECONDS RANK out|err BYTES" (since the start
 *                                                of hnlaunch), then the bytes and a newline
 *
 * A thread makes the folder and writes; the caller only copies bytes. Output that comes faster than
 * it is written, or than 8 MiB in a second, is left out, and the gap is marked by a line
 * "MICROSECONDS - gap BYTES". Rank -1 is hnlaunch itself. When the run has no terminal, nothing is
 * left out, and ranks wait for the disk: a line "MICROSECONDS - detached" marks the beginning. Of
 * long output the newest 128 MiB at least are kept, in output.old and output, and of events 64 MiB
 * (head/run/event_file.h). Once a minute the folder is touched. When a write has
 * failed, the output ends within a piece, and only the summary is still written. The thread also
 * removes the oldest records. Main thread only.
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

enum { RECORDER_SLOW_MS = 10000 }; /* a write that takes longer is a fault of the file system */

struct recorder;

/* call() is called from the thread. */
struct recorder_room {
        void (*call)(void *ctx);
        void *ctx;
};

/* How many runs, and how many bytes of them, are kept. */
struct recorder_keep {
        int runs;
        int64_t bytes;
};

/* Records the run @run below @folder from recorder_open() on; what is put before waits in memory.
 * @elsewhere: the records are in that folder already, but for output, traces and hangs, and only a
 * link to it is made; NULL = no. */
struct recorder *recorder_create(const char *folder, const char *run, const char *elsewhere,
                                 struct recorder_keep keep);
/* Begins to write. Nothing is written, and nothing is made, before. */
void recorder_open(struct recorder *r);
/* Waits until what was put before recorder_open() is written, for RECORDER_SLOW_MS at most. 0; or
 * -errno with @err: the run cannot be recorded. */
int recorder_await(struct recorder *r, struct error *err);

/* Copies bytes of a file; not RECORD_OUTPUT. */
void recorder_put(struct recorder *r, enum record record, const void *data, size_t len);
/* Copies bytes that a rank has written (MSG_STDOUT, MSG_STDERR). False, after
 * recorder_stand_alone() only: let no more come, for RECORDER_SLOW_MS at most, until room is
 * called. NULL does nothing. */
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
