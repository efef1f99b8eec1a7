/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport tree: links that lead through another node's agent (--tree)
 *
 * A link waits until its carrier is READY, then orders the agent there to run the node's own ssh
 * (wire/tree_msg.h). It has no descriptor: what it carries are frames among the carrier's own, so
 * that the head has as many connections as it has children, however deep the tree. It ends with
 * its carrier. Main loop's thread only.
 */
#pragma once

#include "head/nodes/node.h"
#include "head/nodes/transport.h"
#include "head/nodes/tree_login.h"

struct tree_ops {
        /* Frames were appended to node_out(@via). */
        void (*outgoing)(void *ctx, struct node *via);
        /* The last byte of a node that is watched came so long ago. Said when that is too long, and
         * before its link ends. */
        void (*heard)(void *ctx, size_t number, uint32_t silent_ms);
        /* A node's clock is so far ahead of its carrier's. Said before news whose time counts. */
        void (*clock)(void *ctx, size_t number, int64_t offset_ns, int64_t error_ns);
};

/* For hosts with numbers below @n_hosts. @o, @ops and @ways (ssh_loader_tree_login()) are borrowed.
 * NULL with @err: the ssh config or --ssh-command cannot be used. */
struct transport *transport_tree_create(uv_loop_t *loop, const struct ssh_options *o,
                                        const struct tree_login_ops *ways, size_t n_hosts,
                                        const struct tree_ops *ops, void *ctx, struct error *err);

/* A node became READY: links that wait for it begin. */
void transport_tree_ready(struct transport *t, struct node *via);
/* A node is lost: links through it end, and if it has one itself its carrier ends that. */
void transport_tree_cut(struct transport *t, struct node *n);
/* Lets the carrier of @n give it a CHUNK of its own copy. False: not now, there is no credit or a
 * frame is half sent. */
bool transport_tree_give(struct transport *t, struct node *n, uint32_t entry, uint64_t offset,
                         uint32_t len);
/* From now on the carrier of @n tells when it is silent for so long, 0 = no more. */
void transport_tree_watch(struct transport *t, struct node *n, uint32_t silence_ms);
/* A TUNNEL came from @via. Negative: it is malformed. */
int transport_tree_receive(struct transport *t, struct node *via, const struct frame *f,
                           struct error *err);
