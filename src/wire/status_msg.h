/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status_msg: the state of an agent's ranks at one moment: joined or not, and their open requests
 *
 * Sent only when the head asks (STATUS_REQUEST carries a number that the STATUS repeats), so
 * nothing is spent while all is well. Times are ages in milliseconds, so no clocks are compared.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/frame.h"

#define STATUS_NEVER UINT32_MAX /* age of an event that has not happened */

/* A request without an answer yet. */
struct node_status_wait {
        char op[16];  /* "WAIT"; "" = there is none */
        char key[96]; /* the first key, printable, cut */
        uint32_t n_keys;
        uint32_t ms; /* age of the request */
};

enum { STATUS_PORTS = 4 };

struct node_status_rank {
        uint32_t rank, local_rank, pid;
        uint8_t state; /* the letter of /proc/pid/stat: R S D T Z; 0 = the process has ended */
        uint32_t started_ms;
        uint32_t said_ms; /* since libhnlaunch's last message to the store; NEVER = not joined */
        uint32_t seen_ms; /* since the last output, or command to the node's own endpoint */
        uint32_t cpu_percent;         /* of a core since the start */
        char channel[32];             /* kernel wait channel, "" = none or not readable */
        struct node_status_wait wait; /* through libhnlaunch */
        /* Local ports of the rank's connections to the TCP endpoint, on any node. */
        uint32_t ports[STATUS_PORTS], n_ports;
};

/* A connection to this agent's TCP endpoint. Only the node of the process knows the rank: the one
 * with @port in its list, on the node with address @addr. */
struct node_status_conn {
        char addr[64];
        uint32_t port;
        uint32_t seen_ms; /* since the last command */
        struct node_status_wait wait;
};

/* A process that a rank has started, with another MASTER_PORT in its environment than the ranks: it
 * looks for a store of its own, which may not exist. */
struct node_status_other {
        uint32_t pid; /* 0 = none was found, or looked for */
        uint32_t rank, port;
        char name[16]; /* of the program, as in /proc/pid/comm */
};

struct node_status {
        uint32_t number;
        uint32_t rejected; /* rejected connections to the TCP endpoint */
        struct node_status_rank *ranks;
        uint32_t n_ranks;
        struct node_status_conn *conns;
        uint32_t n_conns;
        struct node_status_other other; /* looked for while no rank of the node has joined */
};

void node_status_encode(struct buf *b, const struct node_status *m);
int node_status_decode(struct node_status *m, const struct frame *f, struct error *err);
void node_status_finish(struct node_status *m);
