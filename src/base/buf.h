/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buf: a queue of bytes
 *
 * Bytes are appended at the end and consumed at the front. The readable bytes are always one
 * contiguous piece: buf_data() and buf_len(). A failed allocation is remembered (buf_failed) and
 * makes further appends do nothing, so a single check suffices for a row of appends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

struct buf {
        unsigned char *mem;
        size_t start, end, cap; /* readable bytes are mem[start..end) */
        bool failed;
};

#define BUF_INIT                                                                                   \
        {                                                                                          \
                0                                                                                  \
        }

void buf_finish(struct buf *b); /* frees; the buffer is as new */

/* Never NULL: an empty buffer without memory has the address of an empty string. */
static inline const unsigned char *buf_data(const struct buf *b)
{
        return b->mem ? b->mem + b->start : (const unsigned char *)"";
}
static inline size_t buf_len(const struct buf *b)
{
        return b->end - b->start;
}
static inline bool buf_failed(const struct buf *b)
{
        return b->failed;
}

/* Reserves @n more bytes; the caller writes them and then calls buf_advance(). NULL: no memory. */
void *buf_reserve(struct buf *b, size_t n);
void buf_advance(struct buf *b, size_t n);

/* Copies @n bytes to the end. 0 or -ENOMEM. */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_appends(struct buf *b, const char *text); /* without the NUL */
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Drops @n bytes at the front, n <= buf_len(). */
void buf_consume(struct buf *b, size_t n);
void buf_truncate(struct buf *b, size_t len); /* keeps the first @len <= buf_len() bytes */
void buf_clear(struct buf *b);                /* drops all bytes, keeps the memory */

/* Gives the bytes as a malloc'ed, NUL-terminated string away; the buffer is as new. NULL: no
 * memory. */
char *buf_steal(struct buf *b);
