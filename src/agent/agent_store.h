/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_store: access to the rendezvous store for the processes of this node
 *
 * Two endpoints lead to one relay, which asks the head: a Unix socket for libhnlaunch, and a TCP
 * port for PyTorch's clients on nodes ordered to open a TCP port. A probe checks whether another
 * node's TCP endpoint can be reached from here.
 */
#pragma once

#include <uv.h>

#include "agent/core/uplink.h"
#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/endpoint_unix.h"
#include "agent/endpoint/peer_owners.h"
#include "agent/endpoint/port.h"
#include "agent/endpoint/probe.h"
#include "agent/record/node_trace.h"
#include "store/relay/relay.h"
#include "wire/msg.h"

struct agent_store {
        uv_loop_t *loop;
        struct uplink *up;
        struct relay *relay;
        struct endpoint_unix *endpoint; /* NULL until the first attempt */
        struct endpoint_tcp *tcp;       /* NULL = not open; ranks of other nodes may outlive ours */
        bool tcp_used;                  /* by an attempt that is over here */
        uint8_t tcp_mode;               /* enum endpoint_mode */
        struct held_port port;          /* for MASTER_PORT */
        struct reserved_ports ports;    /* for the ranks, by the order PORTS */
        struct sockaddr_storage
                master; /* the TCP endpoint of the ranks, on any node; family 0 = none */
        struct peer_owners *owners; /* of connections to the TCP endpoint */
        struct probe *probe;        /* NULL = none under way */
        uv_timer_t due;             /* the relay has something to send then */
        struct node_trace *trace;   /* of the ranks' requests */
};

/* All pointers are borrowed. 0 or -ENOMEM. */
int agent_store_init(struct agent_store *s, uv_loop_t *loop, struct uplink *up,
                     struct node_trace *trace, struct error *err);
/* Records the requests that have no answer yet. */
void agent_store_trace_open(struct agent_store *s);
/* Closes everything, in two steps: let the loop turn once in between. */
void agent_store_close(struct agent_store *s);
void agent_store_finish(struct agent_store *s);

/* Opens the Unix socket at @path, once. 0 or a negative errno. */
int agent_store_listen(struct agent_store *s, const char *path, struct error *err);
/* Notes where the ranks' TCP endpoint is; frees the held ports for listening ranks. */
void agent_store_start(struct agent_store *s, const struct launch_order *l);
/* An attempt is over on this node. Closes the local connections, whose unread requests are not
 * meant for the next attempt, and holds the port again. The TCP endpoint stays open for ranks of
 * other nodes. */
void agent_store_end(struct agent_store *s);

/* Orders of the head. Opens the TCP endpoint, or closes it when the order cannot be read; the
 * answer is ENDPOINT_OPENED. */
void agent_store_on_endpoint(struct agent_store *s, const struct frame *f);
/* Holds free ports for the ranks until agent_store_start(); the answer is PORTS_HELD. */
void agent_store_on_ports(struct agent_store *s, const struct frame *f);
/* Probes another node's TCP endpoint; the answer is PROBED, later. */
void agent_store_on_probe(struct agent_store *s, const struct frame *f);
/* Tells who owns sockets of this node, when another node's TCP endpoint asks; the answer is OWNERS.
 */
void agent_store_on_owners_request(struct agent_store *s, const struct frame *f);
/* Takes the answer to a question of this node's TCP endpoint. */
void agent_store_on_owners(struct agent_store *s, const struct frame *f);

/* Sends gathered requests and answers. Call in every turn of the loop. */
void agent_store_turn(struct agent_store *s);
void agent_store_pause(struct agent_store *s, bool paused); /* back pressure */
