/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota: counts the memory of a store and refuses to pass a limit
 *
 * All memory that requests can make grow comes from here: keys, values, items of queues, and what
 * requests without an answer and collectives hold. Each piece counts as its size and QUOTA_PIECE
 * bytes for the allocator and the tables. The code that frees a piece passes the size again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/macros.h"

enum { QUOTA_PIECE = 32 };

struct quota {
        size_t used, max; /* bytes */
        bool refused;     /* a piece was refused at the limit; the caller clears this */
};

static inline bool quota_fits(struct quota *q, size_t size)
{
        bool fits = size <= q->max - MIN(q->used, q->max);

        q->refused |= !fits;
        return fits;
}

/* Returns @size bytes, zero. NULL: at the limit, or no memory; here and below. */
static inline void *quota_alloc(struct quota *q, size_t size)
{
        void *p = quota_fits(q, size + QUOTA_PIECE) ? calloc(1, MAX(size, (size_t)1)) : NULL;

        q->used += p ? size + QUOTA_PIECE : 0;
        return p;
}

/* @p is NULL, or a piece of @size bytes that stays as it is on failure. New bytes are not zero. */
static inline void *quota_resize(struct quota *q, void *p, size_t size, size_t to)
{
        size_t more = p ? to - MIN(size, to) : to + QUOTA_PIECE;
        void *moved = quota_fits(q, more) ? realloc(p, MAX(to, (size_t)1)) : NULL;

        if (moved)
                q->used += p ? to - size : more;
        return moved;
}

/* @p of @size bytes; NULL is fine. */
static inline void quota_free(struct quota *q, void *p, size_t size)
{
        q->used -= p ? size + QUOTA_PIECE : 0;
        free(p);
}
