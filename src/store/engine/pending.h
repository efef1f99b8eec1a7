/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending: requests without an answer yet, by owner and tag
 *
 * A struct pending_request is embedded in a wait, a counter's wait or an arrival at a collective.
 * The table finds it by owner and tag, whatever the number of requests: an owner may be a node's
 * relay, which asks for many clients.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum pending_kind { PENDING_WAIT, PENDING_COUNTER, PENDING_COLLECTIVE };

struct pending_request {
        UT_hash_handle hh;
        uint64_t owner, tag; /* together the name */
        enum pending_kind kind;
        struct pending_owner *home;
        struct pending_request *prev, *next;
};

struct pending_table {
        struct pending_owner *owners;
        struct pending_request *all;
        uint64_t removed; /* so far */
};

/* Adds @p, which is zero but for the fields of others. -ENOMEM. */
int pending_add(struct pending_table *t, struct pending_request *p, uint64_t owner, uint32_t tag,
                enum pending_kind kind);
void pending_remove(struct pending_table *t, struct pending_request *p);
/* Each returns NULL when there is none. */
struct pending_request *pending_find(const struct pending_table *t, uint64_t owner, uint32_t tag);
struct pending_request *pending_first(const struct pending_table *t, uint64_t owner);