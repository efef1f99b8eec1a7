/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order agents: three agents on socketpairs that say what a program of bytes tells them to
 *
 * A step is a byte: the agent in its two lowest bits, what it does in the others, operands behind.
 * Honest steps do what an agent would do now, or nothing; all others make the agent unclean. Node 2
 * is behind node 1 when the head says so (CHILD_AGENT).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/nodes/transport.h"

enum { ORDER_NODES = 3, ORDER_RANKS = 6 };

struct order_hooks {
        void (*happen)(uint8_t what); /* something happens on the head's machine */
        void (*over)(void);           /* the program is over; all agents hang up after the call */
};

/* @data stays valid until order_agents_end(). */
void order_agents_begin(const uint8_t *data, size_t size, struct order_hooks hooks);
void order_agents_end(void);
/* job_config.remote */
extern const struct transport_maker order_agents_transport;

/* Whether the agent, and its parent, have done only honest steps. */
bool order_agent_is_clean(int node);
/* Whether the rank's node has sent EXITED with status 0 since the last call of the second. */
bool order_rank_ended_well(int rank);
void order_agents_forget_ends(void);
