/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table: the keys of the store
 *
 * An entry exists while the key has a value or a queue, or while requests refer to the key. A key
 * is hashed once per request.
 */
#pragma once

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "store/engine/quota.h"
#include "wire/store_msg.h"

struct entry_table {
        struct store_entry *entries;
        size_t n_present;   /* entries with a value, but for hnlaunch's own keys */
        uint64_t writes;    /* goes up when a value changes */
        uint64_t presence;  /* goes up when a key comes, goes or is waited for */
        struct quota quota; /* of the whole store */
};

struct counter_heap {
        struct counter_wait **v; /* the smallest number is the first */
        size_t n, reserved, cap;
};

struct store_entry {
        UT_hash_handle hh;
        struct wait_link *gets;            /* waits for a value */
        struct wait_link *waits;           /* waits for a value or an item */
        struct counter_heap counter_waits; /* waits for a number */
        struct queue_item *queue;          /* NULL = no queue */
        size_t n_items;
        unsigned refs; /* pointers of requests, waiting or not */
        bool present;
        char *value;
        size_t len, cap;
        size_t key_len;
        char key[];
};

struct store_entry *entry_find(const struct entry_table *t, struct bytes key); /* NULL = none */
struct store_entry *entry_make(struct entry_table *t, struct bytes key); /* NULL = no memory */
void entry_release(struct entry_table *t, struct store_entry *e); /* frees an entry without use */

bool entry_has_any(const struct store_entry *e); /* a value or a queue; @e may be NULL */
struct bytes entry_key(const struct store_entry *e);
struct bytes entry_value(const struct store_entry *e); /* NULL or no value = empty */
bool entry_number(const struct store_entry *e,
                  int64_t *number); /* no value = 0; false = no number */

/* Writes @value behind the first @keep bytes. -ENOMEM: nothing has changed (see quota.h). */
int entry_write(struct entry_table *t, struct store_entry *e, size_t keep, struct bytes value);
void entry_replace(struct entry_table *t, struct store_entry *e, char *value,
                   size_t len); /* takes over a piece of the quota as the value */
void entry_clear(struct entry_table *t, struct store_entry *e); /* may free the entry */
