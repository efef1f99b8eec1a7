/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Send queue: flushes nodes at the end of a turn of the loop
 *
 * Store requests and answers are small, and many come in a turn: the frames are written with a
 * single system call per node. The turn ends before the loop sleeps (uv_prepare), so no frame waits
 * for an event.
 */
#pragma once

#include <uv.h>

#include "head/nodes/node.h"

struct send_queue {
        uv_prepare_t prepare;
        struct node *first;
};

/* Initializes memory of the caller. The queue does not keep the loop alive; to be ended by closing
 * @prepare. */
void send_queue_init(struct send_queue *q, uv_loop_t *loop);

/* Calls node_flush() at the end of the turn, once for a node added several times. The node must
 * live until then. */
void send_queue_add(struct send_queue *q, struct node *n);
