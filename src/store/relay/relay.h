/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relay: the node's side of the store: many clients, few messages to the head
 *
 * Pure: no descriptors, no clock. Endpoints hand over the requests of their clients; the relay asks
 * the head in the node's name (client STORE_NODE, separate tags) and hands the answers out.
 *
 *   - Single flight. Identical GET, WAIT, CHECK and FETCH of a turn become a single request. A
 *     later client does not share a request already on the way, because the head may have
 *     answered before: the client waits for the next, which leaves as soon as the first is back.
 *     Only GET and WAIT, which the head may park, can be joined later: a JOIN follows, and the
 *     answer says how many JOINs are covered. Clients not covered are asked for again.
 *   - Combining. ADDs on a key become an ADD of their sum; the result is handed out in order of
 *     arrival. A single ADD is on the way at a time, the others gather meanwhile. Only numbers of
 *     the same sign are combined. COUNTs of a turn on a key become a single COUNT with their
 *     number. The parts of a refused sum are sent again, separately.
 *   - Collectives. Ranks with the same op, name, members, root and length go to the head in a
 *     single message with their values; later ranks follow under the same tag; the head answers
 *     all in a single message. Before, the ranks of this node and of nodes below wait for each
 *     other, if their values are small, for 20 ms at most; meanwhile the head may report a rank
 *     missing that has arrived here. Each rank can be cancelled, or go, by itself.
 *   - Repetition. A small SET directly behind an identical SET, not sent yet, shares its message.
 *   - Batches. Shareable requests leave at the end of the turn, with relay_turn().
 *
 * Order. Other requests go up at once, in order of arrival; shared requests leave behind them, at
 * the end of the turn or later. So a read never overtakes an earlier write of the same client, even
 * if the client did not wait for the answer (SET, APPEND, SET_MANY, PUSH), and never sees a state
 * older than the beginning of the read. A client that always waits for its answers sees its
 * requests take effect in sequence, so the store is linearizable for any set of clients on any
 * nodes. Requests of a client under way at the same time (threads of a process) are concurrent. A
 * FETCH of more than STORE_ANSWER_MAX bytes is made in parts, each at another moment.
 *
 * Relays below. A client may be another node's relay (is_relay), to any depth: relay_request()
 * takes the requests made in that node's name, and the answers have the tags of the relay below.
 * These are all ops between SET and COUNT except forwarded ops, CANCEL, LEAVE, and JOIN, which is
 * answered as by the head. Forwarded requests and GONE travel beside, because they carry numbers of
 * the other relay's clients.
 *
 * HELLO, TOPOLOGY, ABORT, REPORT_ERROR, PROGRESS and DRAINED are about a single rank: they are
 * forwarded under the client's number and tag; so is a collective of a client before the answer to
 * HELLO.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/store_msg.h"

struct relay;
struct relay_client;

/* A request of a client that has come to its end, or a PROGRESS. */
struct relay_seen {
        uint8_t op, status; /* enum store_op, enum store_status */
        struct bytes key;   /* the first */
        int64_t number;     /* the step of a PROGRESS */
        uint64_t since_ns;  /* when the request came, ops.now() */
};

struct relay_ops {
        /* The body of a MSG_STORE for the head, lent. May not call the relay. */
        void (*up)(void *ctx, const void *body, size_t len);
        /* Nanoseconds of any clock; may be NULL: time is 0, and collectives are not held. */
        uint64_t (*now)(void *ctx);
        /* For a trace of what the ranks do; may be NULL, and may not call the relay. */
        void (*seen)(void *ctx, const struct relay_client *c, const struct relay_seen *what);
};

struct relay_client_ops {
        /* The answer to request @reply->tag, lent. May make new requests, may not destroy clients.
         */
        void (*reply)(void *ctx, const struct store_reply *reply);
        /* May be NULL. */
        void (*event)(void *ctx, const struct store_event *event);
        /* On CANCEL of a GET or WAIT the head looks once more, and answers with the result if the
         * keys are there by now. So a time limit of 0 means "now", and a limit shorter than the way
         * to the head does not miss present keys. */
        bool last_look;
        /* A relay of another node, see above: answers to GET and WAIT have the number of JOINs, and
         * last_look is implied. */
        bool is_relay;
};

struct relay *relay_create(struct relay_ops ops, void *ctx);
void relay_destroy(struct relay *r); /* NULL is fine; all clients must be gone */

/* Creates a client for a connection to an endpoint of the node. NULL = no memory. */
struct relay_client *relay_client_create(struct relay *r, struct relay_client_ops ops, void *ctx);
/* The connection is gone: ends all answers, and cancels requests without other waiters. */
void relay_client_destroy(struct relay_client *c);

/* Takes a request. @req is lent; the client field is ignored, the tag is the client's. A tag in
 * use is answered STORE_INVALID. CANCEL answers the request of the same tag with STORE_TIMEOUT at
 * once, unless the answer was given. Two kinds go to the head: a collective's, because the head
 * knows the missing ranks, and a client's with last_look. A cancelled write may or may not take
 * effect. Without is_relay, keys that begin with STORE_OWN_PREFIX are answered STORE_INVALID. */
void relay_request(struct relay_client *c, const struct store_request *req);

/* Must a request of a relay below with @op be handed to relay_request()? */
bool relay_serves(uint8_t op);

/* Takes a REPLY or EVENT from the head. -EPROTO: malformed. */
int relay_deliver(struct relay *r, const void *body, size_t len, struct error *err);

/* Sends the requests due. Call once in every turn of the loop, after everything else. */
void relay_turn(struct relay *r);
/* Returns after how many milliseconds a turn is needed even without events; -1 = never. */
int relay_wait_ms(const struct relay *r);

/* --- for reports of hanging jobs -------------------------------------------------------------- */

struct relay_pending {
        uint8_t op;       /* enum store_op */
        struct bytes key; /* the first */
        uint32_t n_keys;
        uint64_t since_ns; /* of the arrival, ops.now() */
};

/* Returns the oldest request of the client without an answer; false: none. */
bool relay_client_pending(const struct relay_client *c, struct relay_pending *ret);
uint64_t relay_client_seen(const struct relay_client *c); /* time of the last request; 0 = none */
int relay_client_rank(const struct relay_client *c);      /* of HELLO; -1 = unknown */

struct relay_count {
        uint64_t requests; /* of clients */
        uint64_t up, down; /* messages to and from the head */
};
struct relay_count relay_counts(const struct relay *r);
