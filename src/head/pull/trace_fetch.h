/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace fetch: brings home the agents' records of ranks (wire/trace/trace.h)
 *
 * All nodes are asked at once, each for as many of the newest pieces as fit an equal share of
 * TRACE_FETCH_BYTES. A lost or silent node costs one trace only. Main loop's
 * thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "head/nodes/node.h"
#include "wire/frame.h"

struct trace_fetch;

enum { TRACE_FETCH_BYTES = 16 << 20 };

/* @take gets each piece, lent, and the number of the request. */
struct trace_fetch *trace_fetch_create(size_t n_nodes,
                                       void (*take)(void *ctx, const struct node *n,
                                                    uint32_t number, const void *piece, size_t len),
                                       void *ctx);
void trace_fetch_destroy(struct trace_fetch *t); /* NULL is fine */

/* Begins the next request, to @n_nodes; not while trace_fetch_waits(). Then each node is asked; if
 * two pieces of each are too much, the last nodes are left out. The frame is in n->out. */
void trace_fetch_begin(struct trace_fetch *t, size_t n_nodes);
void trace_fetch_ask(struct trace_fetch *t, struct node *n);
bool trace_fetch_waits(const struct trace_fetch *t); /* for a node; NULL does not */
/* Takes RECORDED. -EPROTO with @err: malformed, or more than requested. */
int trace_fetch_take(struct trace_fetch *t, struct node *n, const struct frame *f,
                     struct error *err);
/* Gives the node up; does nothing for a node without a request. NULL does nothing. */
void trace_fetch_lost(struct trace_fetch *t, const struct node *n);
void trace_fetch_cancel(struct trace_fetch *t); /* later answers are dropped */
