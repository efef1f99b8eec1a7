/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store_access: access to the rendezvous store for the processes of this node
 *
 * Two endpoints lead to one relay, which asks the head: a Unix socket for libhnlaunch, and a TCP
 * port for PyTorch's clients on nodes ordered to open a TCP port. A probe checks whether another
 * node's TCP endpoint can be reached from here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/error.h"
#include "wire/msg.h"

struct endpoint_tcp;
struct node_trace;
struct relay;
struct relay_client;
struct store_access;
struct uplink;

/* For the ranks of one world. All pointers are borrowed. @trace gets the requests of ranks. */
struct store_access *store_access_create(uv_loop_t *loop, struct uplink *up,
                                         struct node_trace *trace, uint32_t world);
/* Records the requests that have no answer yet. */
void store_access_trace_open(struct store_access *s);
/* Closes everything, in two steps: let the loop turn once in between. */
void store_access_close(struct store_access *s);
void store_access_destroy(struct store_access *s); /* NULL is fine */

/* Holds a free port for MASTER_PORT and returns its number. */
uint16_t store_access_hold_port(struct store_access *s);
struct relay *store_access_relay(struct store_access *s); /* borrowed */
/* Returns the TCP endpoint of the ranks, on any node; NULL = they have none. */
const struct sockaddr *store_access_master(const struct store_access *s);
/* Returns the TCP endpoint of this node, borrowed; NULL = it has none. */
const struct endpoint_tcp *store_access_tcp(const struct store_access *s);
/* Calls @fn for each client of the Unix socket that has said its rank, with the number of the rank
 * in the job. */
void store_access_each_local(const struct store_access *s,
                             void (*fn)(void *ctx, const struct relay_client *c, uint32_t rank),
                             void *ctx);

/* Opens the Unix socket at @path, once. 0 or a negative errno. */
int store_access_listen(struct store_access *s, const char *path, struct error *err);
/* Notes where the ranks' TCP endpoint is; frees the held ports for listening ranks. */
void store_access_start(struct store_access *s, const struct launch_order *l);
/* All ranks of the world on this node have ended, and start again: closes their connections. */
void store_access_again(struct store_access *s);
/* An attempt is over on this node. Closes the local connections, whose unread requests are not
 * meant for the next attempt, and holds the port again. The TCP endpoint stays open for ranks of
 * other nodes. */
void store_access_end(struct store_access *s);

/* Orders of the head, for @access, a struct store_access. Opens the TCP endpoint, or closes it when
 * the order cannot be read; the answer is ENDPOINT_OPENED. */
void store_access_on_endpoint(void *access, const struct frame *f);
/* Holds free ports for the ranks until store_access_start(); the answer is PORTS_HELD. */
void store_access_on_ports(void *access, const struct frame *f);
/* Probes another node's TCP endpoint; the answer is PROBED, later. */
void store_access_on_probe(void *access, const struct frame *f);
/* Tells who owns sockets of this node, when another node's TCP endpoint asks; the answer is OWNERS.
 */
void store_access_on_owners_request(void *access, const struct frame *f);
/* Takes answers of the store. */
void store_access_on_store(void *access, const struct frame *f);
/* Takes the answer to a question of this node's TCP endpoint. */
void store_access_on_owners(void *access, const struct frame *f);

/* Sends gathered requests and answers. Call in every turn of the loop. */
void store_access_turn(struct store_access *s);
void store_access_resume(struct store_access *s); /* the uplink has room again */
