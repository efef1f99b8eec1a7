/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdin pump: reads a terminal, pipe or file, for rank 0 or for every rank
 *
 * The bytes are read once and, for every rank, sent once per node. Reading pauses while the slowest
 * reading rank has a full window of bytes (MSG_WINDOW) under way. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/core/thread_pool.h"

struct attempt;
struct cluster;
struct stdin_pump;

/* Begins to read @fd for rank 0, or for all ranks. All pointers and @fd are borrowed. NULL: @fd
 * cannot be read, and the ranks were sent the end. */
struct stdin_pump *stdin_pump_create(struct cluster *c, const struct attempt *a,
                                     struct thread_pool *pool, int fd, bool all);
/* @rank has read so many bytes more. -EPROTO: more than were sent. NULL is fine, here and below. */
int stdin_pump_credit(struct stdin_pump *p, int rank, uint32_t bytes);
/* @rank reads no more, and is not waited for. */
void stdin_pump_left(struct stdin_pump *p, int rank);
/* Stops reading; the memory is freed when the loop turns. */
void stdin_pump_destroy(struct stdin_pump *p);
