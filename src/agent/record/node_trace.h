/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_trace: the agent's memory of the deeds of local ranks, for a run that fails
 *
 * Exits, steps, requests to the store, times of output and samples (wire/trace/trace.h) are kept in
 * pieces; beyond NODE_TRACE_PIECES the oldest is dropped. A rank could fill the memory alone by
 * requests without pause: beyond a rate requests are only counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/uplink.h"
#include "wire/status_msg.h"
#include "wire/store_msg.h"
#include "wire/trace/trace.h"

enum { NODE_TRACE_PIECES = 68 /* times TRACE_PIECE: 4 MB */ };

struct node_trace;

struct node_trace *node_trace_create(void);
void node_trace_destroy(struct node_trace *t); /* NULL is fine */

/* All functions with a NULL trace do nothing. */

/* A request of @rank to the store was answered with @status (enum store_status, or TRACE_OPEN: not
 * yet) after @us. Of the key the beginning is kept. */
void node_trace_op(struct node_trace *t, uint32_t rank, uint8_t op, uint8_t status, uint64_t us,
                   struct bytes key);
void node_trace_step(struct node_trace *t, uint32_t rank, int64_t step);
void node_trace_output(struct node_trace *t, uint32_t rank, uint8_t stream, const void *data,
                       size_t len);
void node_trace_exit(struct node_trace *t, uint32_t rank, uint32_t status);
void node_trace_sample(struct node_trace *t, const struct sample *m);

/* Sends the newest @max pieces to the head, as fast as the uplink takes them: call
 * node_trace_turn() in every turn of the loop. */
void node_trace_send(struct node_trace *t, uint32_t max);
void node_trace_turn(struct node_trace *t, struct uplink *up);
