/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: the rendezvous engine: keys with values, waits for keys, collectives
 *
 * Pure: knows requests (wire/store_msg.h) and ranks, but no socket. ops.reply answers a request at
 * once or, after a wait, from inside a later call. Every request gets exactly one reply, except
 * requests of an owner after store_forget().
 *
 * A collective (BARRIER, GATHER, BROADCAST) is named by the key. The arrival of the last member
 * completes it for all at once, so the same name serves for the next. All members must name the
 * same op, members and, for GATHER, length. Ranks with the same owner and tag are answered with a
 * single reply, except ranks that leave or are refused: each has a separate reply. A request of
 * several ranks is as many requests, in sequence.
 *
 * Keys, queues and counters have the semantics of PyTorch's TCPStore:
 *
 *   - A WAIT counts the keys missing on arrival, and ends when each has come. A key that goes away
 *     again meanwhile is not waited for a second time.
 *   - A queue with items is "there" for CHECK and WAIT, not for GET, NUM_KEYS and LIST. A PUSH ends
 *     a single wait: the first in line.
 *   - A counter of COUNT is never reset: late ranks pass at once.
 *
 * Memory is linear in the number of waits, the time of an answer in the number of waits ended. Only
 * LIST, and NUM_KEYS with a prefix, look at all keys. A request with a keys_id (wire/store_keys.h)
 * costs the length of the list only when something has changed since the last with this id.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/store_msg.h"

struct store;

struct store_ops {
        /* @reply is lent, without the client field. May not call the store. */
        void (*reply)(void *ctx, uint64_t owner, const struct store_reply *reply);
        /* The name of the host on which a rank runs, for texts. */
        const char *(*host_of)(void *ctx, int rank);
};

/* @ops is copied, @ctx borrowed. NULL when out of memory. */
struct store *store_create(struct store_ops ops, void *ctx, int world_size);
void store_destroy(struct store *s); /* NULL is fine; pending requests get no reply */

/* Handles SET ... NUM_KEYS, GET ... BROADCAST, CANCEL, FETCH ... COUNT, JOIN and LEAVE; others are
 * answered STORE_INVALID. @owner is any number for the connection; @rank is the asking rank, 0 ..
 * world_size-1, or -1 = none: then the ranks named by @req arrive at a collective. */
void store_request(struct store *s, uint64_t owner, int rank, const struct store_request *req);

/* Drops the pending requests of a closed connection, without replies. */
void store_forget(struct store *s, uint64_t owner);

/* Notes the failure of a rank: every wait, now and later, is answered STORE_PEER with @text, and so
 * is every collective with this member. Collectives without this member stay possible. The first
 * text stays. */
void store_rank_failed(struct store *s, int rank, const char *text);

/* Notes the good end of a rank: collectives with this member, now and later, are answered
 * STORE_PEER. */
void store_rank_exited(struct store *s, int rank);

/* Limits the memory of keys, values, and requests without an answer (quota.h); at first there is no
 * limit. A request that would pass the limit is answered STORE_FULL and changes nothing. */
void store_limit(struct store *s, size_t bytes);
size_t store_used(const struct store *s); /* bytes, as the limit counts them */

/* Whether a key has a value, or its queue an item. */
bool store_has(const struct store *s, struct bytes key);

size_t store_waiting(const struct store *s); /* number of pending requests */
/* Number of pending requests so far that were answered because of another request: not those that
 * were cancelled or forgotten. */
uint64_t store_met(const struct store *s);
