/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays: relays of nodes in front of a real store server, with messages moved by hand
 *
 * No processes and no clock: a message moves when the test says so, in order of sending, so every
 * interleaving of turns, messages and clients can be made, and repeated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/relay/relay.h"

struct relays;

struct relays *relays_create(int n_nodes, int ranks_per_node);
/* Puts @node below @above: messages as STORE_NODE go through the relay of @above, the rest beside.
 * Call before the first client comes. */
void relays_hang_below(struct relays *rs, int node, int above);
/* Cuts @node off from the relay above, which gives up the pending requests of @node. */
void relays_cut_off(struct relays *rs, int node);
/* All clients must be gone. */
void relays_destroy(struct relays *rs);

struct relay *relays_at(const struct relays *rs, int node);
struct store_server *relays_store_server(const struct relays *rs);

void relays_turn(struct relays *rs, int node);
/* Carries the oldest message from the node to the head, or the relay above, or back; false: there
 * is none. */
bool relays_up(struct relays *rs, int node);
bool relays_down(struct relays *rs, int node);
/* Turns and carries until nothing moves, and lets time pass for held requests. */
void relays_settle(struct relays *rs);

/* How many messages with @op have left the node. */
unsigned relays_sent(const struct relays *rs, int node, uint8_t op);

/* Makes every answer of a wait claim to cover all JOINs: the fault of requests shared on their way
 * without a check. */
void relays_lie(struct relays *rs);

/* The relays' time; at 0 nothing is held. */
extern uint64_t relays_now;
