/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous: where the workers of a job meet: the store engine, fed by the nodes' agents
 *
 * Glue without descriptors. Bodies of MSG_STORE come in by store_server_receive(), leave by
 * ops.send. A client must say which rank it is (HELLO) before it asks; the node's relay (client
 * STORE_NODE) need not and cannot: it asks for keys, queues and counters in the node's name, and
 * brings ranks to meetings, in a tree those of other nodes, too. What it waits for ends with the
 * node, not with a client. It knows which client of which node is which rank, so that a timeout can
 * name who is missing, and ends every wait at once when a rank fails. A restart of the job makes a
 * new one (fresh keys).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/store_msg.h"

struct store_server;

/* All texts are lent for the call. send may not be NULL, the others may. */
struct store_server_ops {
        /* Put a MSG_STORE with this body on the way to the agent of @node. Many may be put in one
         * turn of the loop: they should leave together. */
        void (*send)(void *ctx, int node, const void *body, size_t len);
        /* The same for a body in two pieces, which saves copying the second one for every node that
         * is told the same. May be NULL. */
        void (*send_long)(void *ctx, int node, const void *head, size_t len, struct bytes rest);
        /* A rank has opened the library (once per rank). */
        void (*joined)(void *ctx, int rank);
        /* hn_report_error(): what a rank says is wrong with it. @kind is a short word. */
        void (*report_error)(void *ctx, int rank, const char *kind, const char *text);
        /* hn_abort(): a rank asks to end the whole job with this exit code. */
        void (*abort)(void *ctx, int rank, int code, const char *text);
        /* hn_progress(); @total 0 = unknown. */
        void (*progress)(void *ctx, int rank, int64_t step, int64_t total, const char *note);
};

/*
 * @node_of_rank has @world_size entries, 0 .. n_nodes-1; @hosts has @n_nodes names, as a user knows
 * them. @ops and both tables are copied; @ctx is borrowed. NULL when out of memory.
 */
struct store_server *store_server_create(const struct store_server_ops *ops, void *ctx,
                                         int world_size, int n_nodes, const int *node_of_rank,
                                         const char *const *hosts);

/* The body of a MSG_STORE from the agent of @node. -EPROTO: the agent sent nonsense (agents check
 * what clients send, so the stream is lost). Calls ops from inside. */
int store_server_receive(struct store_server *r, int node, const void *body, size_t len,
                         struct error *err);

/* A rank ended badly: news to every client, unless all are being stopped; every wait, now and
 * later, ends with "peer failed".
 * @text says what happened: "rank 3 (gpu02) was killed by signal 9 (Killed)". */
void store_server_rank_failed(struct store_server *r, int rank, const char *text);

/* A rank ended with 0: barriers and other meetings that need it, now and later, end with "peer
 * failed" and its name instead of hanging. */
void store_server_rank_exited(struct store_server *r, int rank);

/* The agent's channel is lost: as if all its ranks had failed, and nothing is sent there again. */
void store_server_node_lost(struct store_server *r, int node);

/* The job is being stopped: the last news to every client; waits go on. */
void store_server_stop_requested(struct store_server *r, const char *text);

bool store_server_used(const struct store_server *r);      /* a request has come */
size_t store_server_waiting(const struct store_server *r); /* requests that are parked */

void store_server_destroy(struct store_server *r); /* NULL is fine; parked requests get no reply */
