/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store_keys: long lists of keys, decoded once for all requests with the same list
 *
 * All nodes of a job wait for the same keys and fetch them at about the same time: thousands of
 * such requests differ in their first nine bytes only.
 */
#pragma once

#include "base/buf.h"
#include "wire/store_msg.h"

enum { STORE_LISTS_KEPT = 4 };

struct store_keys {
        struct store_list {
                struct buf body;              /* of the first request with this list */
                struct store_request decoded; /* borrows from the body */
        } lists[STORE_LISTS_KEPT];
        unsigned next; /* the next list to be replaced */
        uint64_t last_id;
};

#define STORE_KEYS_INIT                                                                            \
        {                                                                                          \
                0                                                                                  \
        }

/* As store_request_decode(). The keys of a WAIT or FETCH with a long list are lent by @k until the
 * next call, and then keys_id is not 0: equal ids are equal lists. */
int store_keys_decode(struct store_keys *k, struct store_request *m, const void *body, size_t len,
                      struct error *err);

void store_keys_finish(struct store_keys *k);
