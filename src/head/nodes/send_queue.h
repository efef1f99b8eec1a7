/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outbox: nodes that have something to send at the end of this turn of the loop
 *
 * A store request is small and so is its answer, but many come in one turn: they are written with
 * one system call per node. The turn ends when all that was readable has been read (uv_check), and
 * before the loop sleeps (uv_prepare), so that nothing waits for an event.
 */
#pragma once

#include <uv.h>

#include "head/nodes/node.h"

struct send_queue {
        uv_check_t check;
        uv_prepare_t prepare;
        struct node *first;
};

/* Memory owned by the caller; it does not keep the loop alive. */
void send_queue_init(struct send_queue *o, uv_loop_t *loop);

/* node_flush() at the end of the turn. The node must live until then. */
void send_queue_add(struct send_queue *o, struct node *n);

/* The memory may go when the loop has turned. */
void send_queue_close(struct send_queue *o);
