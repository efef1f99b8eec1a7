/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relay: the node's side of the store: many clients, few messages to the head
 *
 * Pure: no descriptors and no clock. Doors hand it the requests of their clients; it asks the head
 * in the node's name (client STORE_NODE, tags of its own) and hands the answers out.
 *
 *   - Single flight. Identical GET, WAIT, CHECK and FETCH of one turn become one request. One that
 *     comes later does not take part in a request that is already on its way, because the head may
 *     have answered that before it came: it waits for the next one, which leaves as soon as the
 *     first is back. Only a WAIT that is parked can be joined later: a JOIN follows it, and the
 * answer says how many JOINs it covers.
 *   - Combining. ADDs on one key become one ADD of their sum; the result is handed out in the order
 *     in which they came. One is on its way at a time, the others gather meanwhile.
 *   - Batches. Nothing is sent before relay_turn().
 *
 * Order: requests of one client take effect in the order in which it made them when it waits for
 * each answer, or when the earlier one is a write whose answer nobody awaits (SET, APPEND,
 * SET_MANY, PUSH): that one is sent ahead of everything that came later. So the store stays
 * linearizable for any set of clients on any nodes.
 *
 * HELLO, meetings, TOPOLOGY, ABORT, REPORT_ERROR and PROGRESS are about one rank: they pass under
 * the client's own number and tag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/store_msg.h"

struct relay;
struct relay_client;

struct relay_ops {
        /* The body of a MSG_STORE for the head, lent. */
        void (*up)(void *ctx, const void *body, size_t len);
};

struct relay_client_ops {
        /* The answer to request @reply->tag, lent. May make new requests, may not destroy clients.
         */
        void (*reply)(void *ctx, const struct store_reply *reply);
        /* May be NULL. */
        void (*news)(void *ctx, const struct store_news *news);
};

struct relay *relay_create(struct relay_ops ops, void *ctx); /* NULL = no memory */
void relay_destroy(struct relay *r); /* NULL is fine; all clients must be gone */

/* One connection to one of the node's doors. NULL = no memory. */
struct relay_client *relay_client_create(struct relay *r, struct relay_client_ops ops, void *ctx);
/* It has gone: nothing is answered any more, and what only it waited for is cancelled. */
void relay_client_destroy(struct relay_client *c);

/* @req is lent; its client field is ignored, its tag is the client's own. A tag may not be in use.
 * CANCEL is answered with STORE_TIMEOUT to the request that it names, unless that has its answer.
 */
void relay_request(struct relay_client *c, const struct store_request *req);

/* A REPLY or NEWS from the head. -EPROTO: malformed. */
int relay_deliver(struct relay *r, const void *body, size_t len, struct error *err);

/* Sends what has gathered. Once in every turn of the loop; @now_ns is the time that requests and
 * answers of the next turn are said to have. */
void relay_turn(struct relay *r, uint64_t now_ns);

/* --- what people want to know when a job hangs -------------------------------------------------
 */

struct relay_pending {
        uint8_t op;       /* enum store_op */
        struct bytes key; /* the first */
        uint32_t n_keys;
        uint64_t since_ns;
};

/* The oldest request of the client that has no answer; false: there is none. */
bool relay_client_pending(const struct relay_client *c, struct relay_pending *ret);
uint64_t relay_client_seen(const struct relay_client *c); /* time of its last request, ns */
int relay_client_rank(const struct relay_client *c);      /* of its HELLO; -1 = it said none */

struct relay_count {
        uint64_t requests; /* of clients */
        uint64_t up, down; /* messages to and from the head */
};
struct relay_count relay_counts(const struct relay *r);
