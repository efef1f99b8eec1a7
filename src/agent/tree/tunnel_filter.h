/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnel_filter: takes frames off the stream of a child agent (--tree), and inserts others
 *
 * Behind the magic line both directions of the stream are frames. Store requests of the child
 * node's relay become requests of one client of the relay here, and the answers are inserted
 * between the frames of the head; so the head serves one relay per child, however many nodes are
 * below. Pings work the same way: the parent's pings are inserted, and the child's answers and
 * requests end here. All other frames pass unchanged and in order, and never overtake a frame taken
 * off before. Malformed frames pass, too: the head reports them. Pure.
 */
#pragma once

#include <stddef.h>

#include "store/relay/relay.h"
#include "wire/msg.h"

struct tunnel_filter;

struct tunnel_filter_ops {
        void (*up)(void *ctx, const void *data, size_t len); /* to the head */
        /* To the node: bytes of the head, or @inserted frames. */
        void (*down)(void *ctx, const void *data, size_t len, bool inserted);
        void (*pong)(void *ctx, const struct ping *p);
        void (*ping_request)(void *ctx); /* the child asks for a ping */
        /* Called before frames whose time matters to the head: a rank has failed, or a descendant
         * reports a clock. */
        void (*news)(void *ctx);
};

/* NULL = no memory. @r and @ops are borrowed. */
struct tunnel_filter *tunnel_filter_create(struct relay *r, const struct tunnel_filter_ops *ops,
                                           void *ctx);
/* Cancels the waits of the child node. NULL is fine. */
void tunnel_filter_destroy(struct tunnel_filter *t);

/* Takes bytes from the child. -ENOMEM: the stream cannot be followed any more. */
int tunnel_filter_up(struct tunnel_filter *t, const void *data, size_t len);
/* Takes bytes from the head. */
void tunnel_filter_down(struct tunnel_filter *t, const void *data, size_t len);
/* Pings the child node, if its agent has sent the magic line; at most one ping waits for a frame's
 * end. */
void tunnel_filter_ping(struct tunnel_filter *t, const struct ping *p);
