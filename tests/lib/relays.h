/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays: nodes' relays in front of a real rendezvous, with the ways between them held by hand
 *
 * No processes and no clock: a message moves when the test says so, in the order of its way, so
 * that every interleaving of turns, ways and clients can be made, and made again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/relay/relay.h"

struct relays;

struct relays *relays_create(int n_nodes, int ranks_per_node);
/* @node hangs below @above from now on: what it says as STORE_NODE goes through that one's relay,
 * the rest beside. Before its first client comes. */
void relays_hang_below(struct relays *rs, int node, int above);
/* The way between @node and the one above ends: what it waits for there is given up. */
void relays_cut_off(struct relays *rs, int node);
/* All clients must be gone. */
void relays_destroy(struct relays *rs);

struct relay *relays_at(const struct relays *rs, int node);
struct store_server *relays_rendezvous(const struct relays *rs);

void relays_turn(struct relays *rs, int node);
/* Carries the oldest message from the node to the head, or the relay above, or back; false: there
 * is none. */
bool relays_up(struct relays *rs, int node);
bool relays_down(struct relays *rs, int node);
/* Turns and carries until nothing moves, and lets the time pass that something waits for. */
void relays_settle(struct relays *rs);

/* How many messages with @op have left the node. */
unsigned relays_sent(const struct relays *rs, int node, uint8_t op);

/* Every wait's answer says from now on that it covers whoever came: what happens when requests take
 * part in others that are on their way without asking whether they may. */
void relays_lie(struct relays *rs);

/* The time of the relays' clock; while it is 0 they hold nothing. */
extern uint64_t relays_now;
