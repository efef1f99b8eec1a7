/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parking: requests that wait, by the owner whose they are
 *
 * A struct parked is embedded in what waits; parking finds it again by owner and tag.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum parked_kind { PARKED_WAIT, PARKED_JOIN };

struct parked {
        uint64_t owner;
        uint32_t tag;
        enum parked_kind kind;
        struct parked_owner *home;
        struct parked *prev, *next;
};

struct parking {
        struct parked_owner *owners;
        size_t n;
};

#define PARKING_INIT                                                                               \
        {                                                                                          \
                0                                                                                  \
        }

/* @p has owner, tag and kind filled. 0 or -ENOMEM. */
int parking_add(struct parking *k, struct parked *p);
void parking_remove(struct parking *k, struct parked *p);
struct parked *parking_find(const struct parking *k, uint64_t owner, uint32_t tag);
struct parked *parking_first(const struct parking *k, uint64_t owner); /* one of his, or NULL */
struct parked *parking_any(const struct parking *k);                   /* any, or NULL */

/* Calls @fn for all of one kind; @fn may remove the one it is given. */
void parking_each(struct parking *k, enum parked_kind kind, void (*fn)(void *ctx, struct parked *p),
                  void *ctx);
