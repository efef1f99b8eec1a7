/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: the rendezvous engine: keys with values, waits for keys, meetings of ranks
 *
 * Pure: knows requests (wire/store_msg.h) and ranks, but no socket. A request is answered by
 * ops.reply, at once or, when it has to wait, from inside a later call. Every request gets exactly
 * one reply, except those of an owner that store_forget() was told about.
 *
 * A meeting (BARRIER, GATHER, BROADCAST) is named by its key. It ends for everybody at once when
 * the last member has come, so the same name serves for the next one. All members must name the
 * same op, members and, for GATHER, length. Ranks that come with one owner and tag are answered
 * with one reply, except those that leave or are refused: each of them hears that alone. Requests
 * of several ranks are as many requests, one after the other.
 *
 * Semantics of keys, queues and counters are those of PyTorch's TCPStore:
 *
 *   - A WAIT counts the keys that are missing when it comes, and ends when each of them has come. A
 *     key that goes away again meanwhile is not waited for a second time.
 *   - A queue with items is "there" for CHECK and WAIT, not for GET, NUM_KEYS and LIST. A PUSH ends
 *     the wait of one: the first in line.
 *   - A counter of COUNT is never reset: who comes later passes at once.
 *
 * Waiting costs memory linear in the number of waits, an answer costs time linear in the number of
 * waits it ends. Only LIST, and NUM_KEYS with a prefix, look at all keys.
 * A request with a keys_id (wire/store_keys.h) costs the length of its list only when something has
 * changed since the last one with that id.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/store_msg.h"

struct store;

struct store_ops {
        /* @reply is lent, its client field is not set. May not call the store. */
        void (*reply)(void *ctx, uint64_t owner, const struct store_reply *reply);
        /* The name of the host on which a rank runs, for texts. */
        const char *(*host_of)(void *ctx, int rank);
};

/* @ops is copied, @ctx borrowed. NULL when out of memory. */
struct store *store_create(struct store_ops ops, void *ctx, int world_size);
void store_destroy(struct store *s); /* NULL is fine; what waits gets no reply */

/* Handles SET ... NUM_KEYS, GET ... BROADCAST, CANCEL, FETCH ... COUNT, JOIN and LEAVE; others are
 * answered STORE_INVALID. @owner is any number for the connection it came from; @rank is who asks,
 * 0 .. world_size-1, or -1 = no rank: then who comes to a meeting are the ranks that it names. */
void store_request(struct store *s, uint64_t owner, int rank, const struct store_request *req);

/* The owner's connection is closed: drops what it waits for, without replies. */
void store_forget(struct store *s, uint64_t owner);

/* A rank ended badly: every wait, now and later, is answered STORE_PEER with @text; meetings
 * without it as a member go on to be possible later. The first text stays. */
void store_rank_failed(struct store *s, int rank, const char *text);

/* A rank ended well: meetings that need it, now and later, are answered STORE_PEER. */
void store_rank_exited(struct store *s, int rank);

size_t store_waiting(const struct store *s); /* how many requests are pending */
