/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers are written byte by byte, so neither the byte order nor the alignment of the machine
 * matters. All take_* go through take_raw(): it checks the bytes left, moves the reader on and
 * records the first failure. After a failure it returns NULL and every take_* zero, so a decoder
 * visits all fields without checks and asks take_done() at the end. A length from the input is
 * compared with its limit before memory is allocated.
 */
#include "wire/codec.h"

#include <stdlib.h>
#include <string.h>

/* One reservation and one store for each integer: @n is known where this is called. */
static inline void put_integer(struct buf *b, uint64_t v, size_t n)
{
        unsigned char *to = buf_reserve(b, n);

        if (!to)
                return;
        for (size_t i = 0; i < n; i++)
                to[i] = (unsigned char)(v >> (8 * i));
        buf_advance(b, n);
}

void put_u8(struct buf *b, uint8_t v)
{
        put_integer(b, v, 1);
}

void put_u32(struct buf *b, uint32_t v)
{
        put_integer(b, v, 4);
}

void put_u64(struct buf *b, uint64_t v)
{
        put_integer(b, v, 8);
}

/* Seven bits for each byte, the lowest first; the high bit says that another byte follows. Ten
 * bytes hold 64 bits. */
void put_varint(struct buf *b, uint64_t v)
{
        unsigned char bytes[10];
        size_t n = 0;

        while (v >= 0x80) {
                bytes[n++] = (unsigned char)(v | 0x80);
                v >>= 7;
        }
        bytes[n++] = (unsigned char)v;
        buf_append(b, bytes, n);
}

/* The caller keeps @n below 4 GiB; a frame is smaller. */
void put_bytes(struct buf *b, const void *p, size_t n)
{
        put_u32(b, (uint32_t)n);
        buf_append(b, p, n);
}

void put_str(struct buf *b, const char *s)
{
        put_bytes(b, s, s ? strlen(s) : 0);
}

uint64_t take_varint(struct reader *r)
{
        uint64_t v = 0;

        /* The tenth byte has room for one bit only. A longer form of a small number is accepted. */
        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint8_t byte = take_u8(r);

                if (shift == 63 && byte > 1)
                        break;
                v |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return v;
        }
        r->failed = true;
        return 0;
}

const void *take_bytes(struct reader *r, size_t max, size_t *ret_len)
{
        size_t n = take_u32(r);
        const void *p;

        *ret_len = 0;
        /* A length above the limit is a failure before any byte is read: take_raw() returns NULL
         * then. */
        if (n > max)
                r->failed = true;
        p = take_raw(r, n);
        if (p)
                *ret_len = n;
        return p;
}

/* Returns NULL with 0 bytes after a failure. The rest may be empty. */
const void *take_rest(struct reader *r, size_t *ret_len)
{
        *ret_len = r->failed ? 0 : r->left;
        return take_raw(r, *ret_len);
}

bool take_done(const struct reader *r)
{
        return !r->failed && !r->left;
}

/* --- fields of messages ----------------------------------------------------------------------- */

/* Any byte but 0 is true. */
void codec_bool(struct codec *c, bool *v)
{
        uint8_t byte = *v;

        codec_u8(c, &byte);
        if (c->op == CODEC_DECODE)
                *v = byte;
}

void codec_varint(struct codec *c, uint64_t *v)
{
        if (c->op == CODEC_ENCODE)
                put_varint(c->out, *v);
        else if (c->op == CODEC_DECODE)
                *v = take_varint(&c->in);
}

/* Frees nothing: the bytes are part of the message. After a failure @p keeps its zeros. */
void codec_raw(struct codec *c, void *p, size_t n)
{
        const void *from = c->op == CODEC_DECODE ? take_raw(&c->in, n) : NULL;

        if (c->op == CODEC_ENCODE)
                buf_append(c->out, p, n);
        else if (from)
                memcpy(p, from, n);
}

/* As take_bytes(), but a NUL inside is a failure. */
static const char *take_text_bytes(struct reader *r, size_t max, size_t *ret_len)
{
        const char *p = take_bytes(r, max, ret_len);

        if (p && !memchr(p, '\0', *ret_len))
                return p;
        r->failed = true;
        *ret_len = 0;
        return NULL;
}

/* @n is 0 after a failure, so the text is always terminated. Room for @size includes the NUL. */
void codec_text(struct codec *c, char *text, size_t size)
{
        const char *p;
        size_t n;

        if (c->op == CODEC_ENCODE) {
                put_str(c->out, text);
        } else if (c->op == CODEC_DECODE) {
                p = take_text_bytes(&c->in, size - 1, &n);
                if (p)
                        memcpy(text, p, n);
                text[n] = '\0';
        }
}

/* A decoded string is never NULL unless the whole message is malformed, or memory is short. */
void codec_str(struct codec *c, char **s, size_t max)
{
        const char *p;
        size_t n;

        if (c->op == CODEC_ENCODE) {
                put_str(c->out, *s);
        } else if (c->op == CODEC_DECODE) {
                p = take_text_bytes(&c->in, max, &n);
                *s = p ? strndup(p, n) : NULL;
                codec_require(c, *s);
        } else {
                free(*s);
                *s = NULL;
        }
}

/* strv_push_mem() copies; memory grows with the strings received, not with the count claimed. */
void codec_strv(struct codec *c, struct strv *v, size_t max_count, size_t max_len)
{
        uint32_t count = (uint32_t)v->n;
        const char *p;
        size_t n;

        codec_u32(c, &count);
        codec_require(c, count <= max_count);
        for (uint32_t i = 0; i < count && !c->in.failed; i++) {
                if (c->op == CODEC_ENCODE)
                        put_str(c->out, v->v[i]);
                else if (c->op == CODEC_DECODE && (p = take_text_bytes(&c->in, max_len, &n)))
                        strv_push_mem(v, p, n);
        }
        if (c->op == CODEC_FREE)
                strv_finish(v);
}

/* Lends the bytes of the frame, and frees nothing. */
void codec_rest(struct codec *c, const unsigned char **data, size_t *len)
{
        if (c->op == CODEC_ENCODE)
                buf_append(c->out, *data, *len);
        else if (c->op == CODEC_DECODE)
                *data = take_rest(&c->in, len);
}

void *codec_take_array(struct codec *c, uint32_t *ret_n, size_t max, size_t size)
{
        uint32_t n = take_u32(&c->in);
        void *v = NULL;

        /* Every element takes at least one byte, so a huge count causes no huge allocation. */
        codec_require(c, n <= max && n <= c->in.left);
        if (n && !c->in.failed) {
                v = calloc(n, size);
                /* The caller can tell a lack of memory from a malformed message, and the peer is
                 * not to blame. */
                c->no_memory = !v;
                codec_require(c, v);
        }
        *ret_n = v ? n : 0;
        return v;
}

void codec_u32_array(struct codec *c, uint32_t **v, uint32_t *n, size_t max)
{
        CODEC_ARRAY(c, *v, *n, max, codec_u32);
}
