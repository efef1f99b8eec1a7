/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tap: what is taken off the stream of a carried agent (--tree), and what is put into it
 *
 * Behind the magic line both directions of the stream are frames. What the carried node's relay
 * asks in that node's name goes to the relay here, as one of its clients, and the answers go back
 * between the frames of the head; so K nodes ask the head, however many are behind them. The same
 * with pings: the carrier's go down between the frames of the head, and what answers them or asks
 * for them ends here. Everything else passes unchanged, in its order, and never overtakes what was
 * taken off before it. Frames that make no sense pass, too: the head says what is wrong with them.
 * Pure.
 */
#pragma once

#include <stddef.h>

#include "store/relay/relay.h"
#include "wire/msg.h"

struct tunnel_filter;

struct tunnel_filter_ops {
        void (*up)(void *ctx, const void *data, size_t len);     /* to the head */
        void (*down)(void *ctx, const void *data, size_t len);   /* to the node: the head's bytes */
        void (*insert)(void *ctx, const void *data, size_t len); /* ... and ours */
        void (*pong)(void *ctx, const struct ping *p);
        void (*ping_request)(void *ctx); /* it wants to be pinged */
        /* Before news whose time counts for the head: a rank has failed, or somebody below tells of
         * a clock. */
        void (*news)(void *ctx);
};

/* NULL = no memory. @r and @ops are borrowed. */
struct tunnel_filter *tunnel_filter_create(struct relay *r, const struct tunnel_filter_ops *ops,
                                           void *ctx);
/* What the node waits for is cancelled. NULL is fine. */
void tunnel_filter_destroy(struct tunnel_filter *t);

/* Bytes that came from the node. -ENOMEM: the stream cannot be followed any more. */
int tunnel_filter_up(struct tunnel_filter *t, const void *data, size_t len);
/* Bytes that came from the head. */
void tunnel_filter_down(struct tunnel_filter *t, const void *data, size_t len);
/* Pings the node, if its agent has begun to speak; one ping at most waits for a frame's end. */
void tunnel_filter_ping(struct tunnel_filter *t, const struct ping *p);
