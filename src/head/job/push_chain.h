/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push chain: which node gets the PACKs of a stream from which other one
 *
 * Nodes that miss files stand in a row. Each takes the stream from the node before and passes it on
 * to the node behind, over a connection that the head orders (CHAIN in wire/push_msg.h). A node
 * without such a connection is served by the head. A node that is lost leaves the row, and one that
 * is slow moves to the end, where no node waits for it, also if first. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

struct cluster;
struct pack_stream;
struct push_chain;

struct push_chain_ops {
        /* The head serves the node from @position on. */
        void (*serve)(void *ctx, size_t node, uint32_t position);
        /* The head serves the node no longer. */
        void (*rest)(void *ctx, size_t node);
        /* Sends @node PACKs that the head has sent to @first lately, of about so many bytes
         * together, unless @first misses less than @least bytes. Returns the bytes, 0 = none. */
        uint64_t (*sample)(void *ctx, size_t node, size_t first, uint64_t bytes, uint64_t least);
        /* The node has left the row, maybe because it is over. */
        void (*left)(void *ctx, size_t node);
};

struct push_chain *push_chain_create(struct cluster *c, const struct push_chain_ops *ops,
                                     void *ctx);
void push_chain_free(struct push_chain *c);

/* Makes a row of @n >= 2 nodes for @s, borrowed until none of them is in the row. */
void push_chain_begin(struct push_chain *c, const struct pack_stream *s, const size_t *nodes,
                      size_t n);
/* Takes a CHAINED. 0, or -EPROTO with @err. */
int push_chain_report(struct push_chain *c, size_t node, const struct frame *f, struct error *err);
/* The node has taken so many bytes that came from the head. */
void push_chain_taken(struct push_chain *c, size_t node, uint32_t bytes);
/* Takes lost nodes out, and ends waits. Ten times a second. */
void push_chain_check(struct push_chain *c);
/* The node has all files, or has failed to store files, and still passes the stream on. */
void push_chain_done(struct push_chain *c, size_t node);
/* Forgets a node whose agent is gone. */
void push_chain_forget(struct push_chain *c, size_t node);
bool push_chain_has(const struct push_chain *c, size_t node);
/* Returns the node that passes the stream on to @node, -1 = the head serves it. */
int push_chain_source(const struct push_chain *c, size_t node);
