/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storm: all ranks of a large job meet at once, in two processes
 *
 *   storm_head     hnlaunch's own: struct node, rendezvous and store engine
 *   storm_agents   per node hnlaunch's relay, and in place of its ranks little state machines
 *   floor_head     a bare libuv loop that answers with as many bytes as it is told
 *   floor_agents   as many bytes per node, in as many writes, one after the other
 *
 * Between the two: one Unix socket per node, where a launch has an ssh channel. There are no
 * endpoints and no workers: what is measured is the way from the relay to the engine and back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum storm_pattern {
        STORM_NCCL,  /* exchange of NCCL ids by many roots, as PyTorch 2.7 and later do it */
        STORM_POLL,  /* barrier of PyTorch 1.13: ADD 1, then ADD 0 every 10 ms */
        STORM_LAST,  /* barrier of PyTorch 2.1: the last one SETs what the others WAIT for */
        STORM_COUNT, /* the store's own barrier, PyTorch 2.12 */
        STORM_PATTERNS,
};

/* What the agent of a node said and heard, up to the end. */
struct storm_traffic {
        uint64_t writes, written, read;
};

struct storm_result {
        int64_t wall_ns; /* from the first order to the last node's end */
        int64_t head_ns, agents_ns;
        int64_t open_ns; /* of the floor: making its connections part of a loop */
        int64_t head_kb, agents_kb;
        uint64_t up, down; /* messages, as the relays count them */
};

/* Shared by all processes of a run. */
struct storm {
        enum storm_pattern pattern;
        uint32_t n_ranks, per_node, n_nodes;
        struct storm_result real, floor;
        struct storm_traffic traffic[]; /* per node */
};

/* Each runs in a process of its own; false: it told on stderr what is wrong. @listener listens;
 * @name is the abstract name of that socket. */
bool storm_head(struct storm *s, int listener);
bool storm_agents(struct storm *s, const char *name);
bool floor_head(struct storm *s, int listener);
bool floor_agents(struct storm *s, const char *name);
