/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store_msg: what clients and the store say to each other inside the body of a MSG_STORE
 *
 *   u32 client | u8 op | u32 tag | fields ...
 *
 * The same body travels from libhnlaunch to its agent's endpoint and on to the head, and back.
 * Client 0 is written by libhnlaunch; the endpoint replaces it by its own number for the
 * connection. A client numbers its requests with tags; every request but CANCEL, PROGRESS and
 * REPORT_ERROR gets exactly one REPLY with its tag. There are no deadlines here: a client whose
 * patience ends sends CANCEL with the tag of the request, which then is answered with STORE_TIMEOUT
 * (or was answered already).
 *
 * Requests share one struct; a table in store_msg.c says which fields an op carries.
 * Decoded structs borrow the bytes they were read from, except the arrays that x_finish() frees.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum {
        STORE_KEY_MAX = 8 << 10,
        STORE_VALUE_MAX = 16 << 20,
        STORE_ANSWER_MAX = 24 << 20, /* all values of one reply */
        STORE_TEXT_MAX = 4 << 10,
        STORE_KEYS_MAX = 1 << 17,    /* keys of one WAIT, CHECK, FETCH or SET_MANY */
        STORE_MEMBERS_MAX = 1 << 20, /* ranks of a group */
        STORE_INFLIGHT_MAX = 4096,   /* unanswered requests of one connection */
        STORE_BODY_HEADER = 9,       /* client, op, tag */
};

/* Client numbers with a meaning of their own. */
#define STORE_NODE 0          /* the node itself: its relay, which asks for many clients */
#define STORE_ALL  UINT32_MAX /* every client of the node */

enum store_op {
        /* answered at once */
        STORE_HELLO = 1, /* number = my rank; first on every connection */
        STORE_SET,
        STORE_ADD,    /* reply.number = the sum */
        STORE_APPEND, /* reply.number = the new size */
        /* reply.number = 1 when swapped, 0 when another value is there, -1 when none is;
         * reply.value = what is there now. No key equals an empty expectation. */
        STORE_COMPARE_SET,
        STORE_CHECK,    /* reply.number = 1 when all keys exist */
        STORE_DELETE,   /* reply.number = 1 when it existed */
        STORE_NUM_KEYS, /* key = prefix; reply.number */
        STORE_TOPOLOGY, /* reply.value: see topology_encode() */
        STORE_ABORT,    /* number = exit code, text */
        /* may be parked */
        STORE_GET,
        STORE_WAIT,      /* reply.number, of GET too: see JOIN */
        STORE_BARRIER,   /* key = name, members (none = the world); ranks: see LEAVE */
        STORE_GATHER,    /* ... reply.value = everybody's value, in member order */
        STORE_BROADCAST, /* ... root = index of a member; reply.value = the root's value */
        /* without an answer */
        STORE_CANCEL,       /* tag = the request to give up */
        STORE_REPORT_ERROR, /* key = kind, text */
        STORE_PROGRESS,     /* number = step, total, text */
        STORE_OPS,
        /* endpoint -> head only: what PyTorch's TCPStore needs on top */
        STORE_FETCH = 32, /* keys; never waits. reply.value = per key a u64 length and the bytes, 0
                           * for a key that is not there; number = how many are there */
        STORE_SET_MANY,   /* keys and as many values, all at once */
        STORE_PUSH,       /* at the end of the queue named key; number = its length */
        STORE_POP,        /* number = the length before; value = the first, if there was one */
        STORE_QUEUE_LEN,  /* number; queues exist while they are not empty, beside a key's value */
        STORE_LIST,       /* number = how many keys; reply.value = per key a u64 length and bytes */
        STORE_COUNT,      /* adds total, at least 1, to the counter key, then parks until it is at
                           * least number: so many ranks are there */
        STORE_NODE_OPS,
        /* without an answer: somebody else waits for request @tag now. reply.number of a GET or
         * WAIT that had to wait = how many JOINs came before it ended, so that its relay knows whom
         * the answer covers: the first so many. reply.number -1 of a WAIT = one of the keys has no
         * value but items of a queue. Such an answer is for one client, however many joined: as a
         * PUSH ends the wait of one. The others should ask again behind that client's next request,
         * which as a rule is the POP. */
        STORE_JOIN = 48,
        /* A node's relay asks for several of its ranks at once: BARRIER, GATHER and BROADCAST name
         * them in ranks, more may follow under the same tag, and each is answered once: a reply
         * says in whom for which of them it is. GATHER: value = those of all of them, in this
         * order. LEAVE: these of @tag give up; number 1 = the answer is to say who is missing. */
        STORE_LEAVE = 49,
        STORE_GONE = 64, /* the client's connection is closed */
        /* head -> client */
        STORE_REPLY = 128,
        STORE_NEWS = 129,
};

enum store_status {
        STORE_OK,
        STORE_TIMEOUT,  /* cancelled; ranks = who was missing */
        STORE_PEER,     /* ranks = who failed */
        STORE_INVALID,  /* the request makes no sense */
        STORE_MISMATCH, /* members of a meeting disagree; ranks = who differs */
        STORE_TOO_BIG,  /* a value would pass STORE_VALUE_MAX */
        STORE_NOMEM,
        STORE_STATUSES,
};

enum store_news_kind { STORE_RANK_FAILED = 1, STORE_NODE_LOST, STORE_STOP_REQUESTED };

struct bytes {
        const void *p; /* lent */
        size_t len;
};

struct store_request {
        uint32_t client, tag;
        uint8_t op;
        struct bytes key, value, expect, text;
        int64_t number, total;
        uint32_t root;
        struct bytes *keys;   /* owned, but lent when keys_id is not 0 */
        struct bytes *values; /* owned; of SET_MANY, one per key */
        uint32_t n_keys;
        uint64_t keys_id;  /* not sent; see store_keys_decode() */
        uint32_t *members; /* owned; ranks in group order */
        uint32_t n_members;
        uint32_t *ranks; /* owned; who comes to a meeting, or leaves it. None = the client's own */
        uint32_t n_ranks;
};

struct store_reply {
        uint32_t client, tag;
        uint8_t status; /* enum store_status */
        int64_t number;
        struct bytes value, text;
        const struct bytes *parts; /* encoding only: these, each behind its u64 length, are the */
        uint32_t n_parts;          /* value; lent */
        uint32_t *ranks;           /* owned after decoding */
        uint32_t n_ranks;
        uint32_t *whom; /* the same; of a meeting's request of many: who is answered. None = all */
        uint32_t n_whom;
};

struct store_news {
        uint32_t client;
        uint8_t kind;
        int32_t rank, node; /* -1 = none */
        struct bytes text;
};

/* Encoders append a body (without frame); look at buf_failed(). They trust their caller's lengths.
 * Decoders return 0, or -EPROTO when bytes are malformed or above a limit, or -ENOMEM. */
void store_request_encode(struct buf *b, const struct store_request *m);
int store_request_decode(struct store_request *m, const void *body, size_t len, struct error *err);
void store_request_finish(struct store_request *m);

void store_reply_encode(struct buf *b, const struct store_reply *m);
/* The same in two: all that is in front of the value's bytes, and these. */
void store_reply_encode_head(struct buf *b, const struct store_reply *m);
void store_reply_encode_value(struct buf *b, const struct store_reply *m);
size_t store_reply_value_len(const struct store_reply *m); /* as it will be encoded */
int store_reply_decode(struct store_reply *m, const void *body, size_t len, struct error *err);
void store_reply_finish(struct store_reply *m);

void store_news_encode(struct buf *b, const struct store_news *m);
int store_news_decode(struct store_news *m, const void *body, size_t len, struct error *err);

/* The first fields of any body. A peek needs len >= STORE_BODY_HEADER; else op 0. */
struct store_head {
        uint32_t client, tag;
        uint8_t op;
};
struct store_head store_body_head(const void *body, size_t len);
void store_body_set_client(void *body, uint32_t client);

/* The bytes of a NUL-terminated string, without the NUL. */
struct bytes bytes_of(const char *text);

/* Where ranks live: hosts of the nodes, node of each rank. The decoded form owns its arrays. */
struct topology {
        char **hosts;
        uint32_t n_nodes;
        uint32_t *node_of_rank;
        uint32_t world_size;
};
void topology_encode(struct buf *b, const struct topology *t);
int topology_decode(struct topology *t, const void *p, size_t len, struct error *err);
void topology_finish(struct topology *t);

const char *store_op_name(uint8_t op);
bool store_op_has_answer(uint8_t op);
