/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers are written byte by byte, so neither the byte order nor the alignment of the machine
 * matters. All take_* go through take_raw(): it checks the bytes left, moves the reader on and
 * records the first failure. After a failure it returns NULL and every take_* zero, so a decoder
 * reads all fields without checks and asks take_done() at the end. A length from the input is
 * compared with its limit before memory is allocated.
 */
#include "wire/codec.h"

#include <stdlib.h>
#include <string.h>

void put_u8(struct buf *b, uint8_t v)
{
        buf_append(b, &v, 1);
}

void put_u32(struct buf *b, uint32_t v)
{
        unsigned char bytes[4];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char)(v >> (8 * i));
        buf_append(b, bytes, sizeof(bytes));
}

void put_u64(struct buf *b, uint64_t v)
{
        put_u32(b, (uint32_t)v);
        put_u32(b, (uint32_t)(v >> 32));
}

void put_bytes(struct buf *b, const void *p, size_t n)
{
        put_u32(b, (uint32_t)n);
        buf_append(b, p, n);
}

void put_str(struct buf *b, const char *s)
{
        put_bytes(b, s, s ? strlen(s) : 0);
}

void put_strv(struct buf *b, const struct strv *v)
{
        put_u32(b, (uint32_t)v->n);
        for (size_t i = 0; i < v->n; i++)
                put_str(b, v->v[i]);
}

/* Takes the next @n bytes; NULL after any failure. */
static const unsigned char *take_raw(struct reader *r, size_t n)
{
        const unsigned char *p = r->p;

        if (r->failed || r->left < n) {
                r->failed = true;
                return NULL;
        }
        r->p += n;
        r->left -= n;
        return p;
}

uint8_t take_u8(struct reader *r)
{
        const unsigned char *p = take_raw(r, 1);

        return p ? *p : 0;
}

uint32_t take_u32(struct reader *r)
{
        const unsigned char *p = take_raw(r, 4);

        if (!p)
                return 0;
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t take_u64(struct reader *r)
{
        uint64_t low = take_u32(r);

        return low | (uint64_t)take_u32(r) << 32;
}

const void *take_bytes(struct reader *r, size_t max, size_t *ret_len)
{
        size_t n = take_u32(r);
        const void *p;

        *ret_len = 0;
        if (n > max)
                r->failed = true;
        p = take_raw(r, n);
        if (p)
                *ret_len = n;
        return p;
}

char *take_str(struct reader *r, size_t max)
{
        size_t n;
        const char *p = take_bytes(r, max, &n);
        char *s;

        if (!p || memchr(p, '\0', n)) {
                r->failed = true;
                return NULL;
        }
        s = malloc(n + 1);
        if (!s) {
                r->failed = true;
                return NULL;
        }
        memcpy(s, p, n);
        s[n] = '\0';
        return s;
}

void take_str_into(struct reader *r, char *to, size_t size)
{
        size_t n;
        const char *p = take_bytes(r, size - 1, &n);

        *to = '\0';
        if (!p || memchr(p, '\0', n)) {
                r->failed = true;
                return;
        }
        memcpy(to, p, n);
        to[n] = '\0';
}

void take_strv(struct reader *r, size_t max_count, size_t max_len, struct strv *to)
{
        size_t count = take_u32(r), n;
        const char *p;

        if (count > max_count)
                r->failed = true;
        while (count-- && !r->failed) {
                p = take_bytes(r, max_len, &n);
                if (!p || memchr(p, '\0', n))
                        r->failed = true;
                else
                        strv_push_mem(to, p, n);
        }
}

const void *take_rest(struct reader *r, size_t *ret_len)
{
        *ret_len = r->failed ? 0 : r->left;
        return take_raw(r, *ret_len);
}

bool take_done(const struct reader *r)
{
        return !r->failed && !r->left;
}
