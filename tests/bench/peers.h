/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: many connections to one listener, in one epoll loop
 *
 * Written without libuv and with one read buffer for all, so that the second process of a benchmark
 * costs little next to the first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct peer {
        uint32_t index;
        int fd;
        bool touched, wants_room;
        struct buf in, out; /* append to @out; it is written at the end of the turn */
        uint64_t read, written, writes;
};

struct peers_ops {
        /* There are bytes in p->in; consume what is understood. */
        void (*arrived)(void *ctx, struct peer *p);
        /* Once per turn for each peer that was touched, before @out is written. May be NULL. */
        void (*turn)(void *ctx, struct peer *p);
        /* Once per turn; returns how many milliseconds the loop may sleep, -1 = for ever, -2 = all
         * is done: leave when everything is written. */
        int (*next)(void *ctx);
};

struct peers {
        uint32_t n;
        struct peer *v;
        struct peers_ops ops;
        void *ctx;
        struct buf room; /* for the one that reads */
        uint32_t *touched, n_touched, n_unwritten;
        int epoll;
};

/* Connects @n times to the abstract Unix socket @name; false: it failed, errno. */
bool peers_connect(struct peers *ps, const char *name, uint32_t n);
/* Runs until next() says so; false: a connection ended earlier. */
bool peers_run(struct peers *ps);
void peers_leave(struct peers *ps,
                 struct peer *p); /* ends what we say; nothing is heard any more */
void peers_touch(struct peers *ps, struct peer *p); /* it gets its turn() */
