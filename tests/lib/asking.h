/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking: six clients of two relays, by number, and their answers as lines of text
 *
 * Node 0 has clients 0 to 3, node 1 has 4 and 5. A line is "TAG STATUS NUMBER 'VALUE' TEXT | ..".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "lib/relays.h"

enum { CLIENTS = 6, PER_NODE = 4 };

struct client {
        struct relay_client *peer; /* NULL = gone */
        struct buf said;
        size_t bytes; /* of the last value */
};

extern struct relays *rs;
extern struct client clients[CLIENTS];

/* For cmocka; in a chain node 1 hangs below node 0. */
int set_up(void **state);
int set_up_chain(void **state);
int tear_down(void **state);

struct relay *relay_of(int who);
void on_reply(void *ctx, const struct store_reply *r); /* the clients' own; ctx = the client */
void come(int who, bool last_look);
void go(int who);

/* Returns the answers to @who since the last call. */
void expect(int who, const char *want);

/* @keys: a key, or several with spaces in between, as the op needs. */
void ask_all(int who, uint32_t tag, uint8_t op, const char *keys, const char *value,
             int64_t number);
void ask(int who, uint32_t tag, uint8_t op, const char *keys);
void set(int who, uint32_t tag, const char *key, const char *value);
void add(int who, uint32_t tag, const char *key, int64_t n);
void cancel(int who, uint32_t tag);

unsigned sent(uint8_t op); /* messages of node 0 */

/* Makes the turn of node 0, carries all messages to the head; and the answers back. */
void all_up(void);
void all_down(void);

/* Makes a request on node 1 and carries it at once. */
void elsewhere_set(const char *key, const char *value);
void set_megabytes(const char *key, size_t n);
