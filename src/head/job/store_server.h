/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store server: the store of an attempt, between the store engine and the nodes' agents
 *
 * Without descriptors: bodies of MSG_STORE come in by store_server_receive() and leave by ops.send.
 * A client must tell its rank (HELLO) before any other request. The node's relay (client
 * STORE_NODE) has no rank: it requests keys, queues and counters for the node, and adds ranks to
 * collectives, in a tree also ranks of other nodes. The waits of a relay end with the node, not
 * with a client. Ranks are known by client and node: a timeout can name missing ranks; every wait
 * ends at once when a rank fails. A restart of the job creates a new server, with no keys. Main
 * loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/store_msg.h"

struct store_server;

/* All texts are lent for the call. Only send must be set. */
struct store_server_ops {
        /* Sends a MSG_STORE with the body @head, @rest to the agent of @node. @rest may be the same
         * for many nodes. Messages sent in the same turn of the loop should leave together. */
        void (*send)(void *ctx, int node, const void *head, size_t len, struct bytes rest);
        /* A rank has opened the library; called once per rank. */
        void (*joined)(void *ctx, int rank);
        /* hn_report_error(): an error in the words of a rank. @kind is a short word. */
        void (*report_error)(void *ctx, int rank, const char *kind, const char *text);
        /* hn_abort(): a rank asks to end the whole job with this exit code. */
        void (*abort)(void *ctx, int rank, int code, const char *text);
        /* hn_progress(); @total 0 = unknown. */
        void (*progress)(void *ctx, int rank, int64_t step, int64_t total, const char *note);
        void (*drained)(void *ctx, int rank); /* hn_drained() */
        /* Whether the relay of @node may name a rank of node @other: a parent in the tree. NULL:
         * only ranks of its own. */
        bool (*relays)(void *ctx, int node, int other);
        /* A request was refused because the store is full (store_server_limit); called once. @rank
         * is -1 when a relay asked for ranks of @node that it does not name. */
        void (*full)(void *ctx, int node, int rank, const char *text);
};

/* @ops is copied, @topology is taken over, @ctx is borrowed. NULL when out of memory. */
struct store_server *store_server_create(const struct store_server_ops *ops, void *ctx,
                                         struct topology topology);

/* Limits the memory of the store, see store_limit(). */
void store_server_limit(struct store_server *r, size_t bytes);

/* Takes the body of a MSG_STORE from the agent of @node; calls ops from inside. 0, or -EPROTO with
 * @err: malformed, or a collective with ranks that the node has not, so the agent cannot be trusted
 * (agents check the requests of clients). */
int store_server_receive(struct store_server *r, int node, const void *body, size_t len,
                         struct error *err);

/* A rank failed: tells every client, unless the job is being stopped, and ends every wait, now and
 * later, with "peer failed". @text is the sentence: "rank 3 (gpu02) was killed by SIGKILL
 * (Killed)". */
void store_server_rank_failed(struct store_server *r, int rank, const char *text);

/* Tells whether the rank has spoken to the store in this attempt, also through PMI or PMIx. */
bool store_server_has_joined(const struct store_server *r, int rank);

/* A rank ended with 0: barriers and other collectives with this rank, now and later, end with "peer
 * failed" and the name of the rank instead of hanging. */
void store_server_rank_exited(struct store_server *r, int rank);

/* Writes a key, as hn_store_set() of a rank. */
void store_server_set(struct store_server *r, const char *key, const char *value);

/* Whether a key is there, of libhnlaunch or of PyTorch's store. */
bool store_server_has(const struct store_server *r, const char *key);

/* The link to the agent is lost: all ranks of the node count as failed; nothing is sent there any
 * more. */
void store_server_node_lost(struct store_server *r, int node);

/* The job is being stopped: tells every client, as the last news; waits go on. */
void store_server_stop_requested(struct store_server *r, const char *text);

uint64_t store_server_requests(const struct store_server *r); /* messages that have come */
size_t store_server_waiting(const struct store_server *r);    /* number of parked requests */
uint64_t store_server_met(const struct store_server *r);      /* store_met() */

/* Parked requests get no reply. NULL is fine. */
void store_server_destroy(struct store_server *r);
