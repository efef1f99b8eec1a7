/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parking: requests that wait, by the owner whose they are
 *
 * A struct parked is embedded in what waits; parking finds it again by owner and tag, however many
 * wait: the owner may be a node's relay, which asks for many clients.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum parked_kind { PARKED_WAIT, PARKED_COUNT, PARKED_MEETING };

struct parked {
        UT_hash_handle hh;
        uint64_t owner, tag; /* together they are the name */
        enum parked_kind kind;
        struct parked_owner *home;
        struct parked *prev, *next;
};

struct parking {
        struct parked_owner *owners;
        struct parked *all;
};

#define PARKING_INIT                                                                               \
        {                                                                                          \
                0                                                                                  \
        }

/* @p has owner, tag and kind filled, the rest is zero. 0 or -ENOMEM. */
int parking_add(struct parking *k, struct parked *p);
void parking_remove(struct parking *k, struct parked *p);
struct parked *parking_find(const struct parking *k, uint64_t owner, uint32_t tag);
struct parked *parking_first(const struct parking *k, uint64_t owner); /* one of his, or NULL */
struct parked *parking_any(const struct parking *k);                   /* any, or NULL */
size_t parking_count(const struct parking *k);

/* Calls @fn for all of one kind; @fn may remove the one it is given. */
void parking_each(struct parking *k, enum parked_kind kind, void (*fn)(void *ctx, struct parked *p),
                  void *ctx);
