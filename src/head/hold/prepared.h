/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared: the agents that a hold keeps ready on its nodes
 *
 * On each node the agent of the hold starts the agent's program once more (MSG_CHILD_AGENT without
 * words). Banner and HELLO are kept. A run gets one end of a socket pair, reads banner and HELLO as
 * from a new agent, and from then on bytes pass both ways unread. The next agent is prepared at
 * once. All on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "wire/frame.h"

struct prepared_agents;

/* The nodes of the hold. */
struct hold_nodes {
        /* Returns the buffer for frames to the agent of node @i; the turn ends with sending. NULL =
         * the node is lost. */
        struct buf *(*out)(void *ctx, size_t i);
        const char *(*name)(void *ctx, size_t i);
        bool (*silent)(void *ctx, size_t i); /* no byte has come for longer than usual */
        void *ctx;
};

struct prepared_ops {
        /* Node @i has an agent to be taken, or will have none any more: see prepared_state(). */
        void (*changed)(void *ctx, size_t i);
        /* The agent of @run on node @i has ended with a wait @status. */
        void (*ended)(void *ctx, size_t i, uint64_t run, int status);
        /* A message of a spare agent. NULL = no message is expected. */
        void (*frame)(void *ctx, size_t i, const struct frame *f);
};

/* In the order of use to a run. */
enum prepared_state {
        PREPARED_NEVER, /* the node is lost, or no agent can be started there */
        PREPARED_NOT_YET,
        PREPARED_SILENT, /* not to be taken until the next byte from the node */
        PREPARED_READY,
};

/* For @n nodes; all is borrowed. */
struct prepared_agents *prepared_create(uv_loop_t *loop, const struct hold_nodes *nodes, size_t n,
                                        const struct prepared_ops *ops, void *ctx);
/* Prepares an agent on node @i. */
void prepared_begin(struct prepared_agents *p, size_t i);
enum prepared_state prepared_state(const struct prepared_agents *p, size_t i);
/* Hands out the READY agent of node @i, and prepares the next. Returns the run's end of the stream,
 * or -errno. @run: a number of the caller's. */
int prepared_take(struct prepared_agents *p, size_t i, uint64_t run);
/* Sends an order, whole frames, to the READY agent of node @i. */
void prepared_send(struct prepared_agents *p, size_t i, const struct buf *frames);
/* Takes a TUNNEL of node @i. Negative with @err: malformed. */
int prepared_receive(struct prepared_agents *p, size_t i, const struct frame *f, struct error *err);
/* Node @i is lost with all agents. */
void prepared_lost(struct prepared_agents *p, size_t i);
/* Returns the number of taken agents not ended yet. */
size_t prepared_taken(const struct prepared_agents *p);
/* Ends all agents; then let the loop turn until prepared_destroy() frees. */
void prepared_close(struct prepared_agents *p);
void prepared_destroy(struct prepared_agents *p);
