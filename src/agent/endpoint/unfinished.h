/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unfinished: time and memory of the incomplete commands of an endpoint
 *
 * Each connection has a part. All parts together hold UNFINISHED_MAX bytes of incomplete commands
 * and a little more. Above that only one connection goes on with a large command, the largest of
 * all, so that at least this command completes; all others wait, and small commands pass. The
 * largest must go on by 1 MiB in 10 s, since others wait for the memory. With a patience a
 * connection that has half of a command is closed after that time without a new byte. A connection
 * that is not read, for whatever reason, loses no time.
 *
 * Call everything on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { UNFINISHED_MAX = 64 << 20 };

struct unfinished_link {
        struct unfinished_part *prev, *next;
};

struct unfinished_part {
        struct unfinished_part *prev, *next; /* all */
        struct unfinished_link half_link;    /* those that are to go on */
        uint64_t half_since;                 /* time of the last byte */
        size_t held;                         /* bytes */
        bool half;
        bool blocked; /* not read, for another reason than the memory */
};

struct unfinished_ops {
        void (*steer)(struct unfinished_part *p); /* reads on if nothing else forbids it */
        void (*fail)(struct unfinished_part *p, const char *why);
        void (*name)(const struct unfinished_part *p, char *to, size_t size); /* for the log */
};

struct unfinished {
        const struct unfinished_ops *ops;
        const bool *paused;              /* no connection is read */
        uint64_t patience_ms;            /* 0 = none */
        uv_timer_t timer;                /* runs while connections lose time */
        struct unfinished_part *parts;   /* all */
        struct unfinished_part *half;    /* the one without a new byte for longest first */
        struct unfinished_part *largest; /* the only one that goes on above the limit, or NULL */
        size_t held, largest_had;        /* bytes; @largest had these at @largest_since */
        uint64_t largest_since, looked;
        bool was_over, told;
};

/* @owner becomes the data of the timer, which the owner closes. */
void unfinished_init(struct unfinished *u, uv_loop_t *loop, const struct unfinished_ops *ops,
                     const bool *paused, uint64_t patience_ms, void *owner);
void unfinished_add(struct unfinished *u, struct unfinished_part *p);
void unfinished_remove(struct unfinished *u, struct unfinished_part *p);

/* Call after each change of the bytes kept, now @held, or of what blocks the connection. */
void unfinished_track(struct unfinished *u, struct unfinished_part *p, size_t held, bool blocked);

bool unfinished_may_read(const struct unfinished *u, const struct unfinished_part *p);
/* Returns the bytes to be read at once, @most if there is memory. */
size_t unfinished_read_size(const struct unfinished *u, const struct unfinished_part *p,
                            size_t most);

/* After changes, when no connection is being handled: chooses the largest unless all are paused.
 * True: there is memory again, and all connections that are not read are to be steered. */
bool unfinished_turn(struct unfinished *u);
/* Behind that: starts or stops the timer. */
void unfinished_arm(struct unfinished *u);
