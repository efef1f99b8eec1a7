/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tap: what this node's relay takes off the stream of a carried agent (--tree)
 *
 * Behind the magic line both directions of the stream are frames. What the carried node's relay
 * asks in that node's name goes to the relay here, as one of its clients, and the answers go back
 * between the frames of the head; so K nodes ask the head, however many are behind them.
 * Everything else passes unchanged, in its order, and never overtakes what was taken off before
 * it. Frames that make no sense pass, too: the head says what is wrong with them. Pure.
 */
#pragma once

#include <stddef.h>

#include "store/relay.h"

struct tap;

struct tap_ops {
        void (*up)(void *ctx, const void *data, size_t len);     /* to the head */
        void (*down)(void *ctx, const void *data, size_t len);   /* to the node: the head's bytes */
        void (*answer)(void *ctx, const void *data, size_t len); /* ... and the relay's */
};

/* NULL = no memory. @r and @ops are borrowed. */
struct tap *tap_create(struct relay *r, const struct tap_ops *ops, void *ctx);
/* What the node waits for is cancelled. NULL is fine. */
void tap_destroy(struct tap *t);

/* Bytes that came from the node. -ENOMEM: the stream cannot be followed any more. */
int tap_up(struct tap *t, const void *data, size_t len);
/* Bytes that came from the head. */
void tap_down(struct tap *t, const void *data, size_t len);
