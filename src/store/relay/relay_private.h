/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relay_private: clients, waiters and requests, shared by the files of the relay
 *
 * A waiter is a question of a client. A request goes to the head in the node's name and serves any
 * number of waiters:
 *
 *   FORWARDED   went up under the client's number and tag; kept for the key
 *   UNSENT      waiters of the same kind (op and keys) may attach
 *   SENT        has a tag. Of GET and WAIT, a waiter may attach with a JOIN (wire/store_msg.h);
 *               for other ops a successor gathers new waiters and becomes due at the answer.
 *   CANCELLED   SENT, and a CANCEL followed: the answer is on the way
 *   COMPLETED   the waiters are being answered
 *
 * Beside the state, a request stands in at most a single queue:
 *
 *   DUE         leaves with the next turn: the request, a JOIN, or participants not yet sent
 *   HELD        a collective is waiting for other ranks of the node (collective_waits())
 *   BEHIND      a queue's item woke several waiters of a WAIT. The first has the answer; the others
 *               wait here for the next request of this client, as a rule the POP.
 *
 * UNSENT requests in no queue are successors, and the small SET kept back until another message
 * leaves or the turn ends: an identical SET directly behind it shares the message.
 *
 * A collective (request_collective.c) has a participant per rank and stays open while SENT: later
 * ranks follow under the same tag. A relay below is a waiter with many participants. When a rank
 * gives up, the participant stays until the head has answered for this rank.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/buf.h"
#include "store/relay/relay.h"
#include "wire/store_msg.h"

struct relay_client {
        struct relay *relay;
        uint32_t id; /* the client number of forwarded requests */
        struct relay_client_ops ops;
        void *ctx;
        int rank;       /* -1 = unknown */
        bool announced; /* to the head, which must be told GONE */
        uint64_t seen_ns;
        struct waiter *waiters; /* the oldest first */
        UT_hash_handle hh;
};

struct waiter {
        struct waiter_name {
                uint32_t client, tag;
        } name;
        struct relay_client *client;
        struct request *request;
        int64_t number; /* of the request; COUNT: of ranks */
        int64_t sum;    /* ADD: of the request up to this waiter, once sent */
        uint32_t join;  /* the JOIN to be covered; 0 = attached before the request left */
        /* JOINs of a relay below: all, those covered in any case, and the request's JOIN that
         * covers all. */
        uint32_t joins, joins_covered, joins_by;
        struct participant *participants; /* of a collective, in order of arrival */
        uint32_t n_answered;              /* of these, by the present reply */
        uint64_t since_ns;
        struct waiter *prev, *next;   /* of the request */
        struct waiter *older, *newer; /* of the client */
        UT_hash_handle hh;
};

struct participant {
        uint32_t rank;
        struct waiter *waiter; /* NULL = gone; the head has yet to confirm */
        bool unsent;
        bool answered; /* by the present reply */
        void *value;   /* the contribution, until sent */
        size_t len;
        struct participant *prev, *next;               /* of the waiter */
        struct participant *unsent_prev, *unsent_next; /* of the request */
        UT_hash_handle hh;
};

enum request_state {
        REQUEST_FORWARDED,
        REQUEST_UNSENT,
        REQUEST_SENT,
        REQUEST_CANCELLED,
        REQUEST_COMPLETED,
};

#define EXPECT_WORLD UINT32_MAX /* n_expected: all local ranks */

enum request_queue { QUEUE_NONE, QUEUE_DUE, QUEUE_HELD, QUEUE_BEHIND, REQUEST_QUEUES };

struct request {
        uint8_t op;
        enum request_state state;
        enum request_queue queue;
        struct request *queue_prev, *queue_next;
        bool is_collective;     /* with participants, in the node's name */
        bool open;              /* in the table where new waiters find it */
        uint32_t tag;           /* SENT, CANCELLED */
        struct waiter *waiters; /* in order of arrival */
        struct bytes first_key; /* within body */
        uint32_t n_keys;
        union {
                struct {
                        struct request *successor, *predecessor;
                        uint32_t behind;             /* QUEUE_BEHIND: the client to wait for */
                        uint32_t joins;              /* JOINs sent */
                        uint32_t n_sent;             /* ADD, COUNT: waiters when it was sent */
                        int64_t sum;                 /* ADD, COUNT: of all waiters */
                        struct chunked_fetch *fetch; /* FETCH: the answer in parts */
                } shared;
                struct {
                        struct participant *participants; /* by rank */
                        struct participant *unsent;
                        uint32_t n_unsent;
                        size_t unsent_bytes; /* of their values */
                        size_t value_len;    /* GATHER: of each rank */
                        uint32_t n_expected; /* members that may come here, or EXPECT_WORLD */
                        uint64_t held_until; /* 0 = not held yet */
                        bool answering;      /* waiters are being answered: not to be freed */
                } collective;
        };
        UT_hash_handle hh_keys;
        size_t len;
        unsigned char body[]; /* the encoded request, without the amount of an OP_SUMMED;
                               * separate ones: the first key */
};

/* A rank seen at this relay, which is expected to come again: collectives are held for a moment
 * until these ranks have arrived. A rank listed wrongly costs time, a missing one a message. */
struct local_rank {
        uint32_t rank;
        UT_hash_handle hh;
};

struct relay {
        struct relay_ops ops;
        void *ctx;
        struct relay_client *clients;
        struct waiter *waiters; /* by name */
        uint32_t last_id;
        struct relay_count count;
        /* Requests without an answer yet, by tag. Tag 0 stands for none. */
        struct sent_tag {
                struct request *of; /* NULL = a free tag */
                uint32_t next_free;
        } * tags;
        uint32_t n_tags, free_tag;
        struct request *open[STORE_NODE_OPS]; /* by keys */
        struct request *recent;   /* of these, the last with many keys: found without encoding */
        struct request *kept_set; /* the small SET kept back, or NULL */
        struct request *queues[REQUEST_QUEUES];
        struct local_rank *local_ranks; /* by number */
        struct buf scratch;
};

/* relay.c */

/* Hands @reply to request @tag of the client. May do anything to waiters. */
void relay_reply(struct relay_client *c, uint32_t tag, struct store_reply *reply);
/* The same for a waiter detached from the request; frees the waiter. */
void waiter_answer(struct waiter *w, struct store_reply *reply);

/* request.c */

enum op_trait {
        OP_SHARED = 1,     /* waiters with the same keys share a request */
        OP_SUMMED = 2,     /* their amounts are added up; the amount is the last field */
        OP_JOINABLE = 4,   /* a request on its way can be joined */
        OP_FORWARDED = 8,  /* about one rank: passes under the client's number */
        OP_COLLECTIVE = 16 /* BARRIER, GATHER, BROADCAST */
};
bool op_is(uint8_t op, enum op_trait trait);

/* Lends an empty buffer until the next call of this or an encoder. */
struct buf *relay_scratch(struct relay *relay);
/* Lends @req encoded in the name of @client: STORE_NODE or a client's number. No memory: p is NULL.
 */
struct bytes relay_encode(struct relay *relay, uint32_t client, const struct store_request *req);

/* Sends a message, behind the SET kept back. */
void relay_send(struct relay *relay, struct bytes body);
/* The same for @req, encoded as above. -ENOMEM: not sent. */
int relay_send_request(struct relay *relay, uint32_t client, const struct store_request *req);
void relay_flush_set(struct relay *relay); /* sends the SET kept back, which there is */

/* Makes a request UNSENT, with the first key at @key_at in @body. NULL = no memory. */
struct request *request_create(const struct store_request *req, struct bytes body, size_t key_at);
void request_destroy(struct request *r);
/* Moves the request to the end of a queue, or, with QUEUE_NONE, out of every queue. */
void request_enqueue(struct relay *relay, struct request *r, enum request_queue queue);
/* Lets new waiters find the request, and sends it with the next turn. */
void request_open(struct relay *relay, struct request *r);
/* Hides the request from new waiters; the successor becomes due. */
void request_close(struct relay *relay, struct request *r);
void request_take_tag(struct relay *relay, struct request *r); /* becomes SENT */
void request_free_tag(struct relay *relay, const struct request *r);

/* Attaches @w to a request that serves @req: shared, separate or, for ops about a rank
 * and collectives without ranks, forwarded. -ENOMEM; -EINVAL: as collective_attach(). */
int request_attach(struct relay *relay, struct waiter *w, const struct store_request *req);
/* Detaches @w without an answer; a request without waiters is given up. */
void request_detach(struct relay *relay, struct waiter *w);
/* GET, WAIT: moves @w to a separate request with a CANCEL directly behind, which the head answers
 * at once with the present state. -ENOMEM: no answer will come, @w is to be detached. */
int request_recheck(struct relay *relay, struct waiter *w);
/* Notes a JOIN of a relay below to the request of @w. */
void request_join(struct relay *relay, struct waiter *w);
/* Makes the requests BEHIND @client due: the client has sent a request, or is gone. */
void relay_release_behind(struct relay *relay, uint32_t client);
/* Sends a request taken from QUEUE_DUE, or a JOIN to it. */
void request_send_due(struct relay *relay, struct request *r);
/* Hands out the answer to a request without participants, and frees the request. */
void request_complete(struct relay *relay, struct request *r, const struct store_reply *reply);

/* request_collective.c */

/* Attaches @w, or adds more ranks of a relay below. -ENOMEM; -EINVAL: @req is another request, a
 * rank is there already, or ranks and values do not fit together. On errors the waiter keeps the
 * previous ranks. */
int collective_attach(struct relay *relay, struct waiter *w, const struct store_request *req);
void collective_detach(struct relay *relay, struct waiter *w);
/* These ranks of @w (NULL = all) give up. With @tell the head answers with the missing ranks, else
 * only confirms. */
void collective_withdraw(struct relay *relay, struct waiter *w, const uint32_t *ranks, uint32_t n,
                         bool tell);
/* Is @r to be held until more ranks have arrived? */
bool collective_waits(struct relay *relay, struct request *r, uint64_t now);
/* Sends the ranks not sent yet. False: no memory; the waiters have been answered so, and @r may be
 * gone.
 */
bool collective_send(struct relay *relay, struct request *r);
void collective_complete(struct relay *relay, struct request *r, const struct store_reply *reply);
void collective_drop_participant(struct request *r, struct participant *p);

void local_ranks_add(struct relay *relay, uint32_t rank); /* again is fine */
void local_ranks_remove(struct relay *relay, uint32_t rank);
