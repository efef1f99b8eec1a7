/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chain: takes the PACKs of a push from the head or from another node, and passes them on to one
 *
 * The head orders each connection between nodes (CHAIN in wire/push_msg.h) and gives both ends the
 * same key, for one connection of Noise. The port is open from the order until the peer with the
 * key has come. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/frame.h"

struct chain;
struct push_receiver;
struct uplink;

/* @up gets the reports, @push the PACKs; both are borrowed. */
struct chain *chain_create(uv_loop_t *loop, struct uplink *up, struct push_receiver *push);
/* Orders of the head; @chain is the chain. */
void chain_on_pack(void *chain, const struct frame *f);
void chain_on_chain(void *chain, const struct frame *f);
/* Closes all handles. The loop must turn before chain_destroy(). */
void chain_close(struct chain *c);
void chain_destroy(struct chain *c);
