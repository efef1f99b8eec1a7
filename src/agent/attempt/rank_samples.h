/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_samples: the activity of the node and its ranks, every second while samples are wanted
 *
 * `hnlaunch top` wants samples while it is open. The node's trace gets samples from 10 s after the
 * start on, so a short run pays nothing.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "wire/frame.h"

struct gpu_record;
struct node_attempt;
struct node_trace;
struct rank_samples;
struct world_stores;
struct uplink;

/* All pointers are borrowed. */
struct rank_samples *rank_samples_create(uv_loop_t *loop, struct uplink *up,
                                         const struct node_attempt *attempt,
                                         struct world_stores *stores, struct node_trace *trace);
void rank_samples_close(struct rank_samples *s); /* let the loop turn once more */
void rank_samples_destroy(struct rank_samples *s);

/* Ranks were started, for a further world or again; all ranks have ended. */
void rank_samples_begin(struct rank_samples *s);
void rank_samples_end(struct rank_samples *s);
/* Takes SAMPLE of the head, for @samples, a struct rank_samples. */
void rank_samples_on_order(void *samples, const struct frame *f);

/* Returns the first figures of the node's GPUs in the last attempt; NULL = there are none. */
const struct gpu_record *rank_samples_first_gpus(const struct rank_samples *s);
/* Whether @pid is the process that queries the driver of the GPUs; the notice that a process, this
 * or another, was reaped. */
bool rank_samples_have(const struct rank_samples *s, pid_t pid);
void rank_samples_reaped(struct rank_samples *s, pid_t pid, int status);
