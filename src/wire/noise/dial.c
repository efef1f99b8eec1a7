/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greetings are a magic word and a message of Noise without payload: fixed sizes, so that the
 * head needs no memory for a connection that has not proved anything. A record is opened in place,
 * in the buffer that received it.
 */
#include "wire/noise/dial.h"

#include <ctype.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/macros.h"
#include "wire/codec.h"

static const char magic[DIAL_MAGIC + 1] = "HNDIAL1\n";
/* Mixed into the handshake: a peer with another prologue fails like a peer with another secret. */
static const char prologue[] = "hnlaunch dial-in 1";

enum { RECORD_LENGTH = 2, RECORD_TYPE = 1 };

void dial_psk(uint8_t to[NOISE_KEY], const char *secret)
{
        crypto_generichash(to, NOISE_KEY, (const unsigned char *)secret, strlen(secret), NULL, 0);
}

/* --- greetings -------------------------------------------------------------------------------- */

/* Keeps the hash for PROOF, since noise_split() wipes the handshake. */
static void end_handshake(struct dial_stream *s)
{
        memcpy(s->hash, s->handshake.hash, sizeof(s->hash));
        noise_split(&s->handshake, &s->send, &s->receive);
}

void dial_greet(struct dial_stream *s, const uint8_t psk[NOISE_KEY], uint8_t out[DIAL_GREETING])
{
        noise_begin(&s->handshake, true, psk, prologue, sizeof(prologue) - 1, NULL);
        memcpy(out, magic, DIAL_MAGIC);
        noise_write(&s->handshake, NULL, 0, out + DIAL_MAGIC);
}

int dial_take_answer(struct dial_stream *s, const uint8_t in[DIAL_GREETING])
{
        uint8_t none[1];

        if (memcmp(in, magic, DIAL_MAGIC) != 0)
                return -EPROTO;
        if (noise_read(&s->handshake, in + DIAL_MAGIC, NOISE_GREETING, none) < 0)
                return -EBADMSG;
        end_handshake(s);
        return 0;
}

int dial_answer(struct dial_stream *s, const uint8_t psk[NOISE_KEY],
                const uint8_t in[DIAL_GREETING], uint8_t out[DIAL_GREETING])
{
        uint8_t none[1];

        if (memcmp(in, magic, DIAL_MAGIC) != 0)
                return -EPROTO;
        /* After the cheap comparison: a stray connection costs no hashes. */
        noise_begin(&s->handshake, false, psk, prologue, sizeof(prologue) - 1, NULL);
        memcpy(out, magic, DIAL_MAGIC);
        if (noise_read(&s->handshake, in + DIAL_MAGIC, NOISE_GREETING, none) < 0 ||
            noise_write(&s->handshake, NULL, 0, out + DIAL_MAGIC) < 0)
                return -EBADMSG;
        end_handshake(s);
        return 0;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Appends a sealed record, encrypted in place. */
static void put_record(struct dial_stream *s, enum dial_type type, const void *body, size_t len,
                       struct buf *out)
{
        size_t plain = RECORD_TYPE + len, sealed = plain + NOISE_TAG;
        uint8_t *to = buf_reserve(out, RECORD_LENGTH + sealed);

        if (!to)
                return; /* remembered by the buffer */
        to[0] = (uint8_t)sealed;
        to[1] = (uint8_t)(sealed >> 8);
        to += RECORD_LENGTH;
        to[0] = (uint8_t)type;
        if (len)
                memcpy(to + RECORD_TYPE, body, len);
        noise_seal(&s->send, to, plain, to);
        buf_advance(out, RECORD_LENGTH + sealed);
}

void dial_put(struct dial_stream *s, enum dial_type type, const void *body, size_t len,
              struct buf *out)
{
        /* An empty body is a record, too. */
        size_t at = 0;

        do {
                size_t n = MIN(len - at, (size_t)DIAL_DATA_MAX);

                put_record(s, type, (const unsigned char *)body + at, n, out);
                at += n;
        } while (at < len);
}

int dial_take(struct dial_stream *s, struct buf *in, struct dial_record *ret)
{
        unsigned char *p = in->mem + in->start;
        size_t len;

        if (buf_len(in) < RECORD_LENGTH)
                return 0;
        len = (size_t)p[0] | (size_t)p[1] << 8;
        /* Too short to be of this stream: the length itself is not sealed. */
        if (len < RECORD_TYPE + NOISE_TAG)
                return -EBADMSG;
        if (buf_len(in) < RECORD_LENGTH + len)
                return 0;
        p += RECORD_LENGTH;
        /* In place: the plain text is shorter and begins where the sealed text begins. */
        if (noise_open(&s->receive, p, len, p) < 0)
                return -EBADMSG;
        *ret = (struct dial_record){ .type = p[0],
                                     .body = p + RECORD_TYPE,
                                     .len = len - RECORD_TYPE - NOISE_TAG,
                                     .whole = RECORD_LENGTH + len };
        return 1;
}

/* --- messages --------------------------------------------------------------------------------- */

static void code_dial_join(struct codec *c, struct dial_join *m)
{
        codec_u32(c, &m->version);
        codec_u32(c, &m->rank);
        codec_u32(c, &m->nodes);
        codec_text(c, m->name, sizeof(m->name));
}

static void code_dial_end(struct codec *c, struct dial_end *m)
{
        codec_u8(c, &m->code);
        codec_text(c, m->text, sizeof(m->text));
}

static bool is_name_byte(char c)
{
        return isalnum((unsigned char)c) || (c && strchr(".-_", c));
}

void dial_join_put(struct dial_stream *s, const struct dial_join *m, struct buf *out)
{
        struct dial_join copy = *m;
        struct buf body = BUF_INIT;

        /* Host names of other systems may hold anything; the head accepts no such name. */
        for (char *c = copy.name; *c; c++)
                if (!is_name_byte(*c))
                        *c = '_';
        code_dial_join(&CODEC_TO(&body), &copy);
        dial_put(s, DIAL_JOIN, buf_data(&body), buf_len(&body), out);
        buf_finish(&body);
}

int dial_join_decode(struct dial_join *m, const struct dial_record *r)
{
        struct codec c = CODEC_FROM(r->body, r->len);

        *m = (struct dial_join){ 0 };
        if (r->type != DIAL_JOIN)
                return -EPROTO;
        /* Checked again here, because the name appears in messages to the user. */
        code_dial_join(&c, m);
        for (const char *p = m->name; *p; p++)
                codec_require(&c, is_name_byte(*p));
        return take_done(&c.in) && *m->name ? 0 : -EPROTO;
}

void dial_end_put(struct dial_stream *s, enum dial_type type, const struct dial_end *m,
                  struct buf *out)
{
        struct dial_end copy = *m;
        struct buf body = BUF_INIT;

        code_dial_end(&CODEC_TO(&body), &copy);
        dial_put(s, type, buf_data(&body), buf_len(&body), out);
        buf_finish(&body);
}

int dial_end_decode(struct dial_end *m, const struct dial_record *r)
{
        struct codec c = CODEC_FROM(r->body, r->len);

        *m = (struct dial_end){ 0 };
        if (r->type != DIAL_END && r->type != DIAL_REFUSED && r->type != DIAL_NOTICE)
                return -EPROTO;
        code_dial_end(&c, m);
        return take_done(&c.in) ? 0 : -EPROTO;
}
