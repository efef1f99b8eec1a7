/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store_msg: requests and replies between clients and the store, the body of a MSG_STORE
 *
 *   u32 client | u8 op | u32 tag | fields ...
 *
 * The same body travels from libhnlaunch to the agent's endpoint and on to the head, and back.
 * libhnlaunch writes client 0; the endpoint puts in the number of the connection. A client numbers
 * its requests with tags; every request but CANCEL, PROGRESS and REPORT_ERROR gets exactly one
 * REPLY with the same tag. There are no deadlines on the wire: a client whose deadline has passed
 * sends CANCEL with the tag of the request, which is then answered with STORE_TIMEOUT (unless the
 * answer is under way already).
 *
 * All requests share one struct; a table in store_msg.c lists the fields of each op. Decoded
 * structs borrow the input, except for the arrays freed by x_finish().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum {
        STORE_KEY_MAX = 8 << 10,
        STORE_VALUE_MAX = 16 << 20,
        STORE_ANSWER_MAX = 24 << 20, /* all values of a reply */
        STORE_TEXT_MAX = 4 << 10,
        STORE_KEYS_MAX = 1 << 17,    /* keys of a WAIT, CHECK, FETCH or SET_MANY */
        STORE_MEMBERS_MAX = 1 << 20, /* ranks of a group */
        STORE_INFLIGHT_MAX = 4096,   /* unanswered requests of a connection */
        STORE_BODY_HEADER = 9,       /* client, op, tag */
};

/* Client numbers with a meaning of their own. */
#define STORE_NODE 0          /* the node: its relay, which asks for many clients */
#define STORE_ALL  UINT32_MAX /* every client of the node */

/* Keys and names that begin so are hnlaunch's own: agents exchange values by them. A rank cannot
 * name them (relay_request() refuses), and they are not in LIST and NUM_KEYS. */
#define STORE_OWN_PREFIX     "\0hn:"
#define STORE_OWN_PREFIX_LEN (sizeof(STORE_OWN_PREFIX) - 1)

/* Exists when a host is drained, with the name of the newest. The same with a / and the name of a
 * host has the milliseconds that its ranks have. */
#define STORE_DRAIN_KEY "hn/drain"

enum store_op {
        /* answered at once */
        STORE_HELLO = 1, /* number = my rank; first on every connection */
        STORE_SET,
        STORE_ADD,    /* reply.number = the sum */
        STORE_APPEND, /* reply.number = the new size */
        /* reply.number = 1 when swapped, 0 when another value is there, -1 when there is none;
           reply.value = the value now. A missing key equals an empty expectation. */
        STORE_COMPARE_SET,
        STORE_CHECK,    /* reply.number = 1 when all keys exist */
        STORE_DELETE,   /* reply.number = 1 when the key existed */
        STORE_NUM_KEYS, /* key = prefix; reply.number */
        STORE_TOPOLOGY, /* reply.value: see topology_encode() */
        STORE_ABORT,    /* number = exit code, text */
        /* may have to wait */
        STORE_GET,
        STORE_WAIT,      /* reply.number, of GET too: see JOIN */
        STORE_BARRIER,   /* key = name, members (none = the world); ranks: see LEAVE */
        STORE_GATHER,    /* ... reply.value = the values of all members, in member order */
        STORE_BROADCAST, /* ... root = index of a member; reply.value = the root's value */
        /* without an answer */
        STORE_CANCEL,       /* tag = the request to give up */
        STORE_REPORT_ERROR, /* key = kind, text */
        STORE_PROGRESS,     /* number = step, total, text */
        /* answered at once: this rank has saved, and may be ended */
        STORE_DRAINED,
        STORE_OPS,
        /* endpoint -> head only: additions for PyTorch's TCPStore */
        STORE_FETCH = 32, /* keys; never waits. reply.value = per key a u64 length and the bytes, 0
                             for a missing key; number = how many exist */
        STORE_SET_MANY,   /* keys and as many values, all at once */
        STORE_PUSH,       /* at the end of the queue named key; number = the new length */
        STORE_POP,        /* number = the length before; value = the first item, if any */
        STORE_QUEUE_LEN,  /* number; a queue exists while not empty, beside the value of the key */
        STORE_LIST,       /* number = how many keys; reply.value = per key a u64 length and bytes */
        STORE_COUNT, /* adds total, at least 1, to the counter key, then waits until the counter is
                        at least number */
        STORE_NODE_OPS,
        /* without an answer: one more client waits for request @tag. reply.number of a GET or WAIT
           that had to wait = how many JOINs came before the answer: the relay gives it to the first
           so many clients. reply.number -1 of a WAIT = one of the keys has no value but queue
           items. This answer is for a single client, because a PUSH ends the wait of one; the other
           clients should ask again after the next request of that client, normally the POP. */
        STORE_JOIN = 48,
        /* A node's relay asks for several of its ranks at once: BARRIER, GATHER and BROADCAST name
           them in ranks, and later requests with the same tag may add more. Each rank is answered
           once; reply.whom lists the ranks of a reply. GATHER: value = the values of these ranks,
           in this order. LEAVE: these ranks of @tag give up; number 1 = the answer is to name the
           missing ranks. */
        STORE_LEAVE = 49,
        STORE_GONE = 64, /* the client's connection is closed */
        /* head -> client */
        STORE_REPLY = 128,
        STORE_EVENT = 129,
};

enum store_status {
        STORE_OK,
        STORE_TIMEOUT,  /* cancelled; ranks = the missing ones */
        STORE_PEER,     /* ranks = the failed ones */
        STORE_INVALID,  /* the request is invalid */
        STORE_MISMATCH, /* members of a collective disagree; ranks = the differing ones */
        STORE_TOO_BIG,  /* a value would pass STORE_VALUE_MAX */
        STORE_NOMEM,
        STORE_FULL, /* the store would pass its limit */
        STORE_STATUSES,
};

enum store_event_kind { STORE_RANK_FAILED = 1, STORE_NODE_LOST, STORE_STOP_REQUESTED };

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
        struct bytes *values; /* owned; of SET_MANY, in the order of the keys */
        uint32_t n_keys;
        uint64_t keys_id;  /* not sent; see store_keys_decode() */
        uint32_t *members; /* owned; ranks in group order */
        uint32_t n_members;
        uint32_t *ranks; /* owned; ranks arriving at a collective, or leaving it. None = the
                            client's own */
        uint32_t n_ranks;
};

struct store_reply {
        uint32_t client, tag;
        uint8_t status; /* enum store_status */
        int64_t number;
        struct bytes value, text;
        const struct bytes
                *parts;   /* encoding only: these parts, each after a u64 length, are the */
        uint32_t n_parts; /* value; lent */
        uint32_t *ranks;  /* owned after decoding */
        uint32_t n_ranks;
        uint32_t *whom; /* the same; ranks answered by this reply to a collective request of several
                           ranks. None = all */
        uint32_t n_whom;
};

struct store_event {
        uint32_t client;
        uint8_t kind;
        int32_t rank, node; /* -1 = none */
        struct bytes text;
};

/* Encoders append a body (without frame); check buf_failed(). The caller keeps lengths below the
 * limits. Decoders: 0; -EPROTO: malformed bytes or above a limit; -ENOMEM. */
void store_request_encode(struct buf *b, const struct store_request *m);
int store_request_decode(struct store_request *m, const void *body, size_t len, struct error *err);
void store_request_finish(struct store_request *m);

void store_reply_encode(struct buf *b, const struct store_reply *m);
/* The same in two steps: everything before the bytes of the value, then the value. */
void store_reply_encode_head(struct buf *b, const struct store_reply *m);
void store_reply_encode_value(struct buf *b, const struct store_reply *m);
size_t store_reply_value_len(const struct store_reply *m); /* as encoded */
int store_reply_decode(struct store_reply *m, const void *body, size_t len, struct error *err);
void store_reply_finish(struct store_reply *m);

void store_event_encode(struct buf *b, const struct store_event *m);
int store_event_decode(struct store_event *m, const void *body, size_t len, struct error *err);

/* Reads the first fields of any body; op 0 unless len >= STORE_BODY_HEADER. */
struct store_head {
        uint32_t client, tag;
        uint8_t op;
};
struct store_head store_body_head(const void *body, size_t len);

bool store_key_is_own(struct bytes key); /* begins with STORE_OWN_PREFIX */

/* The bytes of a NUL-terminated string, without the NUL. */
struct bytes bytes_of(const char *text);

/* The places of ranks: hosts of the nodes, node of each rank. The decoded form owns its arrays. */
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

/* A key in a message to users: it has up to 8 KiB of any bytes, so a long key is cut, and bytes
 * other than printable ASCII become \xNN. */

enum { KEY_FORMAT_SIZE = 128 };

/* Writes at most KEY_FORMAT_SIZE bytes with NUL and returns @to. A cut key ends with
 * "...". */
const char *key_format(char *to, struct bytes key);

/* The same in a buffer living to the end of the block. */
#define KEY_FORMAT(key) key_format((char[KEY_FORMAT_SIZE]){ 0 }, (key))

/* Returns "barrier", "all_gather" or "broadcast", the name of a collective's op. */
const char *store_call_name(uint8_t op);
