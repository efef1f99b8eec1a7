/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdin pump: reads a terminal, pipe or file, for rank 0 or for every rank
 *
 * The bytes are read once and, for every rank, sent once per node when all ranks have started.
 * Reading pauses while the slowest reading rank has a full window of bytes (MSG_WINDOW) under way.
 *
 * A run that lives without its terminal has one source after the other: that of each `hnlaunch
 * attach`. Such a source ends without an end for the ranks. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "head/core/thread_pool.h"

struct attempt;
struct cluster;
struct stdin_pump;

/* Makes a pump for @rank, or with -1 for all ranks. All pointers are borrowed. */
struct stdin_pump *stdin_pump_create(struct cluster *c, const struct attempt *a,
                                     struct thread_pool *pool, int rank);
/* Begins to read @fd, which is borrowed, and whose end is the end for the ranks. So is a failed
 * read, with a warning. */
void stdin_pump_read(struct stdin_pump *p, int fd);

/* Calls @fn when three Ctrl-C have come within a second: a rank with a terminal gets each, and the
 * user may want to stop the job. */
void stdin_pump_count_interrupts(struct stdin_pump *p, void (*fn)(void *ctx), void *ctx);

/* Begins to read the stream socket @fd in place of a source that was left, and takes it over; its
 * end is no end for the ranks. -errno with @err: NULL, or another source is there (-EBUSY), or the
 * ranks were sent the end (-EPIPE); @fd is closed. */
int stdin_pump_lend(struct stdin_pump *p, int fd, struct error *err);
/* Sends the ranks the end, behind the bytes that the source of stdin_pump_lend() still has. */
void stdin_pump_end(struct stdin_pump *p);
/* Has a terminal that hangs up be left; without it, that is the end for the ranks. */
void stdin_pump_outlive_terminal(struct stdin_pump *p);
/* Leaves a terminal, without an end for the ranks. NULL is fine, here and below. */
void stdin_pump_leave_terminal(struct stdin_pump *p);

/* @rank has started: it gets what was read so far, and all that follows. Before, bytes wait for it,
 * and at most 64 KiB are read. */
void stdin_pump_started(struct stdin_pump *p, int rank);
/* @rank has read so many bytes more. -EPROTO: more than were sent. */
int stdin_pump_credit(struct stdin_pump *p, int rank, uint32_t bytes);
/* @rank reads no more, and is not waited for. */
void stdin_pump_left(struct stdin_pump *p, int rank);
/* Stops reading; the memory is freed when the loop turns. */
void stdin_pump_destroy(struct stdin_pump *p);
