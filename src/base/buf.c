/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readable bytes lie between start and end of one allocation. buf_consume() only moves start;
 * grow_room() moves the bytes to the front when that frees enough, else doubles the capacity, so
 * that a byte is copied a constant number of times on the average.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_finish(struct buf *b)
{
        free(b->mem);
        *b = (struct buf)BUF_INIT;
}

/* Moves the bytes to the front; when this does not free enough, doubles the capacity. realloc()
 * moves pages where there are many, so a large buffer does not exist twice. */
static void *grow_room(struct buf *b, size_t n)
{
        size_t len = buf_len(b), cap;
        /* Bytes are moved only when the free space in front is half of the buffer: a move is then
         * paid for by the bytes consumed before. */
        bool fits = b->mem && b->cap - len >= n && b->start >= b->cap / 2;
        void *mem;

        if (b->failed)
                return NULL;
        if (b->start)
                memmove(b->mem, b->mem + b->start, len);
        b->start = 0;
        b->end = len;
        if (!fits) {
                cap = MAX(b->cap * 2, (size_t)256); /* 256: the first allocation */
                while (cap - len < n)
                        cap *= 2;
                mem = realloc(b->mem, cap);
                if (!mem) {
                        b->failed = true;
                        return NULL;
                }
                b->mem = mem;
                b->cap = cap;
        }
        return b->mem + b->end;
}

void *buf_reserve(struct buf *b, size_t n)
{
        return b->cap - b->end >= n && b->mem && !b->failed ? b->mem + b->end : grow_room(b, n);
}

void buf_advance(struct buf *b, size_t n)
{
        b->end += n;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
        void *to;

        if (!n)
                return b->failed ? -ENOMEM : 0;
        to = buf_reserve(b, n);
        if (!to)
                return -ENOMEM;
        memcpy(to, data, n);
        b->end += n;
        return 0;
}

int buf_appends(struct buf *b, const char *text)
{
        return buf_append(b, text, strlen(text));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list ap;
        char *to;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        to = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
        if (!to)
                return -ENOMEM;
        va_start(ap, fmt);
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        va_end(ap);
        b->end += (size_t)n;
        return 0;
}

void buf_consume(struct buf *b, size_t n)
{
        b->start += n;
        if (b->start == b->end)
                b->start = b->end = 0;
}

void buf_truncate(struct buf *b, size_t len)
{
        b->end = b->start + len;
        if (!len)
                buf_clear(b);
}

void buf_clear(struct buf *b)
{
        b->start = b->end = 0;
}

char *buf_steal(struct buf *b)
{
        char *text;

        /* The NUL also makes memory for an empty buffer, and shows a failure of an earlier
         * append. */
        if (buf_append(b, "", 1) < 0) {
                buf_finish(b);
                return NULL;
        }
        /* free() needs the beginning of the allocation. */
        memmove(b->mem, b->mem + b->start, buf_len(b));
        text = (char *)b->mem;
        *b = (struct buf)BUF_INIT;
        return text;
}
