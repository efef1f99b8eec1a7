/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster_msg: what an agent knows about its ranks at this moment: who has joined, who waits for
 * what
 *
 * Made only when the head asks (ASK carries a number that the ROSTER repeats), so that it costs
 * nothing while all is well. Times are ages in milliseconds, so no clocks are compared.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

#define ROSTER_NEVER UINT32_MAX /* an age of what has not happened */

/* A request of somebody that has no answer yet. */
struct roster_wait {
        char op[16];  /* "WAIT"; "" = there is none */
        char key[96]; /* the first key of it, printable, cut */
        uint32_t n_keys;
        uint32_t ms; /* how long already */
};

enum { ROSTER_PORTS = 4 };

struct roster_rank {
        uint32_t rank, local_rank, pid;
        uint8_t state; /* the letter of /proc/pid/stat: R S D T Z; 0 = the process has ended */
        uint32_t started_ms;
        uint32_t said_ms;     /* since libhnlaunch's last word to the store; NEVER = not joined */
        uint32_t seen_ms;     /* since its last output, or word to the node's own door */
        uint32_t cpu_percent; /* of one core since it started */
        char channel[32];     /* kernel wait channel, "" = none or not to be had */
        struct roster_wait wait; /* through libhnlaunch */
        /* Local ports of its connections to the TCP door, wherever that is. */
        uint32_t ports[ROSTER_PORTS], n_ports;
};

/* A connection to this agent's TCP door. The rank behind it is known where its process is: it is
 * the one that lists @port, on the node that has @addr. */
struct roster_conn {
        char addr[64];
        uint32_t port;
        uint32_t seen_ms; /* since its last command */
        struct roster_wait wait;
};

struct roster {
        uint32_t number;
        uint32_t strangers; /* connections to the TCP door that were turned away */
        struct roster_rank *ranks;
        uint32_t n_ranks;
        struct roster_conn *conns;
        uint32_t n_conns;
};

void ask_encode(struct buf *b, uint32_t number);
int ask_decode(uint32_t *number, const struct frame *f, struct error *err);

void roster_encode(struct buf *b, const struct roster *m);
int roster_decode(struct roster *m, const struct frame *f, struct error *err);
void roster_finish(struct roster *m);
