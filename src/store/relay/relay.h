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
 *     first is back. Only a GET or WAIT, which may be parked, can be joined later: a JOIN follows
 *     it, and the answer says how many JOINs it covers. Whoever is not covered is asked for again.
 *   - Combining. ADDs on one key become one ADD of their sum; the result is handed out in the order
 *     in which they came. One is on its way at a time, the others gather meanwhile. Only numbers of
 *     one sign are combined. COUNTs of one turn on one key become one, which says how many it
 * stands for. When a sum is refused its parts are sent one by one.
 *   - Meetings. The ranks that come to the same one (op, name, members, root and length) go there
 *     in one message, with their values, and later ones follow under its tag; the head answers all
 *     of them with one. Those of this node, and of nodes below, wait for each other before that, if
 *     they bring few bytes and for 20 ms at most; so long the head may call somebody missing who
 *     waits at another node. Each of them can be cancelled, or go, by itself.
 *   - The same said twice. A small SET right behind an identical one is that one, while it has not
 *     left.
 *   - Batches. What can be shared leaves at the end of the turn, with relay_turn().
 *
 * Order. Requests that cannot be shared go up at once, in the order in which they come; shared ones
 * leave behind them, at the end of the turn or later. So a read is never ahead of a write that its
 * client made before it without waiting for the answer (SET, APPEND, SET_MANY, PUSH), and never
 * ahead of its own beginning. A client that waits for the answers of all others sees its requests
 * take effect one after another, so the store is linearizable for any set of clients on any nodes.
 * Requests that one client has under way at the same time (threads of a process) are concurrent.
 * A FETCH of more than STORE_ANSWER_MAX bytes is made in parts, each of its own moment.
 *
 * Relays below. A client may be another node's relay (is_relay), to any depth: relay_request()
 * takes what that one says as STORE_NODE, and the tags of the answers are its own. These are all
 * ops between SET and COUNT that do not pass, CANCEL, LEAVE, and JOIN, which is answered as the
 * head answers it. What passes, and GONE, travels beside: it carries numbers of that relay's
 * clients.
 *
 * HELLO, TOPOLOGY, ABORT, REPORT_ERROR and PROGRESS are about one rank: they pass under the
 * client's own number and tag. So does a meeting of one whose HELLO the head has not answered yet.
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
        /* The body of a MSG_STORE for the head, lent. May not call the relay. */
        void (*up)(void *ctx, const void *body, size_t len);
        /* Nanoseconds of any clock; may be NULL: all is at 0, and meetings are not held. */
        uint64_t (*now)(void *ctx);
};

struct relay_client_ops {
        /* The answer to request @reply->tag, lent. May make new requests, may not destroy clients.
         */
        void (*reply)(void *ctx, const struct store_reply *reply);
        /* May be NULL. */
        void (*news)(void *ctx, const struct store_news *news);
        /* A GET or WAIT that is cancelled is looked at once more by the head, which answers with
         * the result when the keys are there by now. So that a time limit of 0 means "now", and one
         * that is shorter than the way to the head is no reason to miss what is there. */
        bool last_look;
        /* A relay of another node, see above: GET and WAIT are answered with the number of JOINs,
         * and looked at once more as with last_look. */
        bool is_relay;
};

struct relay *relay_create(struct relay_ops ops, void *ctx); /* NULL = no memory */
void relay_destroy(struct relay *r); /* NULL is fine; all clients must be gone */

/* One connection to one of the node's endpoints. NULL = no memory. */
struct relay_client *relay_client_create(struct relay *r, struct relay_client_ops ops, void *ctx);
/* It has gone: nothing is answered any more, and what only it waited for is cancelled. */
void relay_client_destroy(struct relay_client *c);

/* @req is lent; its client field is ignored, its tag is the client's own. A tag that is in use is
 * answered STORE_INVALID. CANCEL is answered with STORE_TIMEOUT to the request that it names, at
 * once, unless that has its answer. Two go to the head: a meeting's, which knows who is missing,
 * and that of a client with last_look. A cancelled write may or may not take effect. */
void relay_request(struct relay_client *c, const struct store_request *req);

/* What a relay below asks in its node's name, for relay_request(). */
bool relay_serves(uint8_t op);

/* A REPLY or NEWS from the head. -EPROTO: malformed. */
int relay_deliver(struct relay *r, const void *body, size_t len, struct error *err);

/* Sends what has gathered. Once in every turn of the loop, after everything else. */
void relay_turn(struct relay *r);
/* After how many milliseconds there should be a turn, even if nothing happens; -1 = never. */
int relay_wait_ms(const struct relay *r);

/* --- what people want to know when a job hangs -------------------------------------------------
 */

struct relay_pending {
        uint8_t op;       /* enum store_op */
        struct bytes key; /* the first */
        uint32_t n_keys;
        uint64_t since_ns; /* when it came, ops.now() */
};

/* The oldest request of the client that has no answer; false: there is none. */
bool relay_client_pending(const struct relay_client *c, struct relay_pending *ret);
uint64_t relay_client_seen(const struct relay_client *c); /* time of its last request; 0 = none */
int relay_client_rank(const struct relay_client *c);      /* of its HELLO; -1 = it said none */

struct relay_count {
        uint64_t requests; /* of clients */
        uint64_t up, down; /* messages to and from the head */
};
struct relay_count relay_counts(const struct relay *r);
