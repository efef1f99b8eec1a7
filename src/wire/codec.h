/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec: little-endian integers and byte strings, to a buffer and from untrusted bytes
 *
 * put_* append to a struct buf, which remembers a failed allocation. take_* read from a struct
 * reader, which remembers the first failure: from then on every take_* returns zero or NULL and
 * take_done() returns false. codec_* do either, or free: one function that visits the fields of a
 * message with them is its encoder, decoder and destructor (like the filters of XDR, RFC 4506).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/strv.h"

void put_u8(struct buf *b, uint8_t v);
void put_u32(struct buf *b, uint32_t v);
void put_u64(struct buf *b, uint64_t v);
void put_varint(struct buf *b, uint64_t v);             /* unsigned LEB128 */
void put_bytes(struct buf *b, const void *p, size_t n); /* u32 length, then the bytes */
void put_str(struct buf *b, const char *s);             /* the bytes without the NUL; NULL = "" */

struct reader {
        const unsigned char *p;
        size_t left;
        bool failed;
};

#define READER_INIT(data, len)                                                                     \
        {                                                                                          \
                .p = (data), .left = (len)                                                         \
        }

/* Takes the next @n bytes; NULL after any failure. */
static inline const unsigned char *take_raw(struct reader *r, size_t n)
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

static inline uint8_t take_u8(struct reader *r)
{
        const unsigned char *p = take_raw(r, 1);

        return p ? *p : 0;
}

static inline uint32_t take_u32(struct reader *r)
{
        const unsigned char *p = take_raw(r, 4);

        if (!p)
                return 0;
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t take_u64(struct reader *r)
{
        uint64_t low = take_u32(r);

        return low | (uint64_t)take_u32(r) << 32;
}

uint64_t take_varint(struct reader *r); /* at most ten bytes; beyond 64 bits is a failure */
/* Lends bytes of the input; NULL when the input ends before, or the length is above @max. */
const void *take_bytes(struct reader *r, size_t max, size_t *ret_len);
/* Lends the rest of the input. */
const void *take_rest(struct reader *r, size_t *ret_len);
/* True if nothing failed and nothing is left over. */
bool take_done(const struct reader *r);

/* --- fields of messages ----------------------------------------------------------------------- */

enum codec_op {
        CODEC_ENCODE, /* write to @out; the message is not changed */
        CODEC_DECODE, /* read from @in into a zeroed message */
        CODEC_FREE,   /* free, and leave no pointer behind */
};

struct codec {
        enum codec_op op;
        struct buf *out;
        struct reader in;
        bool no_memory; /* the reason of a failure */
};

#define CODEC_TO(buf)         ((struct codec){ .op = CODEC_ENCODE, .out = (buf) })
#define CODEC_FROM(data, len) ((struct codec){ .op = CODEC_DECODE, .in = READER_INIT(data, len) })
#define CODEC_FREEING         ((struct codec){ .op = CODEC_FREE })

/* Inline: where the op is known, they cost no more than put_* and take_*. */
static inline void codec_u8(struct codec *c, uint8_t *v)
{
        if (c->op == CODEC_ENCODE)
                put_u8(c->out, *v);
        else if (c->op == CODEC_DECODE)
                *v = take_u8(&c->in);
}

static inline void codec_u32(struct codec *c, uint32_t *v)
{
        if (c->op == CODEC_ENCODE)
                put_u32(c->out, *v);
        else if (c->op == CODEC_DECODE)
                *v = take_u32(&c->in);
}

static inline void codec_u64(struct codec *c, uint64_t *v)
{
        if (c->op == CODEC_ENCODE)
                put_u64(c->out, *v);
        else if (c->op == CODEC_DECODE)
                *v = take_u64(&c->in);
}

/* What was decoded so far is malformed unless @valid; ignored when encoding or freeing. */
static inline void codec_require(struct codec *c, bool valid)
{
        if (c->op == CODEC_DECODE && !valid)
                c->in.failed = true;
}

void codec_bool(struct codec *c, bool *v); /* a byte */
/* An unsigned LEB128 number of at most ten bytes; a value beyond 64 bits is a failure. */
void codec_varint(struct codec *c, uint64_t *v);
/* Bytes of a fixed number. */
void codec_raw(struct codec *c, void *p, size_t n);
/* A string in an array of @size. This and the next two: a NUL inside is a failure. */
void codec_text(struct codec *c, char *text, size_t size);
/* A malloc'ed string. */
void codec_str(struct codec *c, char **s, size_t max);
void codec_strv(struct codec *c, struct strv *v, size_t max_count, size_t max_len);
/* The rest of the input, lent. */
void codec_rest(struct codec *c, const unsigned char **data, size_t *len);

/* Visits a malloc'ed array @v: the u32 count @n, then each element with @visit(codec, element). A
 * count above @max or above the bytes left is a failure that allocates nothing. */
#define CODEC_ARRAY(c, v, n, max, visit)                                                           \
        do {                                                                                       \
                if ((c)->op == CODEC_DECODE)                                                       \
                        (v) = codec_take_array((c), &(n), (max), sizeof(*(v)));                    \
                else                                                                               \
                        codec_u32((c), &(n));                                                      \
                for (uint32_t i_ = 0; i_ < (n) && !(c)->in.failed; i_++)                           \
                        visit((c), &(v)[i_]);                                                      \
                if ((c)->op == CODEC_FREE) {                                                       \
                        free(v);                                                                   \
                        (v) = NULL;                                                                \
                        (n) = 0;                                                                   \
                }                                                                                  \
        } while (0)

/* Reads the count and allocates the zeroed elements; NULL after a failure, or for none. */
void *codec_take_array(struct codec *c, uint32_t *ret_n, size_t max, size_t size);
/* CODEC_ARRAY() of numbers. */
void codec_u32_array(struct codec *c, uint32_t **v, uint32_t *n, size_t max);
