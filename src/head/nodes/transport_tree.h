/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport tree: links through another node's agent (--tree)
 *
 * A link waits until the parent is READY, then orders the agent there to run the node's own ssh
 * (wire/tree_msg.h). The link has no descriptor: the bytes are frames among the parent's own, so
 * that the head has as many connections as children, however deep the tree. A link ends with the
 * parent's. Main loop's thread only.
 */
#pragma once

#include "head/nodes/node.h"
#include "head/nodes/send_queue.h"
#include "head/nodes/transport.h"
#include "head/nodes/tree_login.h"

struct tree_ops {
        /* The last byte of a watched node came so long ago. Called when the silence is too long,
         * and before the node's link ends. */
        void (*heard)(void *ctx, size_t number, uint32_t silent_ms);
        /* A node's clock is so far ahead of the parent's. Called before messages with times. */
        void (*clock)(void *ctx, size_t number, int64_t offset_ns, int64_t error_ns);
};

/* Creates a transport for hosts with numbers below @n_hosts. @o, @q, for frames to parents, @ops
 * and
 * @logins (ssh_loader_tree_login()) are borrowed. NULL with @err: the ssh config or --ssh-command
 * is unusable. */
struct transport *transport_tree_create(uv_loop_t *loop, const struct ssh_options *o,
                                        const struct tree_login_ops *logins, size_t n_hosts,
                                        struct send_queue *q, const struct tree_ops *ops, void *ctx,
                                        struct error *err);

/* Starts the links waiting for @via, which became READY. */
void transport_tree_ready(struct transport *t, struct node *via);
/* Ends the links through @n, a lost node, and has the parent end the node's own link. */
void transport_tree_cut(struct transport *t, struct node *n);
/* Asks the parent of @n to report a silence of @silence_ms from now on, 0 = no longer. */
void transport_tree_watch(struct transport *t, struct node *n, uint32_t silence_ms);
/* Handles a TUNNEL frame from @via. Negative: malformed. */
int transport_tree_receive(struct transport *t, struct node *via, const struct frame *f,
                           struct error *err);
