/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial: what a node that calls the head and the head say to each other (docs/protocol.md, Dial-in)
 *
 *   node -> head   "HNDIAL1\n", first message of Noise
 *   head -> node   "HNDIAL1\n", second message of Noise
 *   then records, both ways:
 *   u16 length of the sealed bytes | sealed: u8 type | body
 *
 *   JOIN      node -> head   the first record; struct dial_join
 *   WELCOME   head -> node   empty: start the agent
 *   DATA      both           bytes of the stream between head and agent
 *   EXIT      node -> head   the agent has ended; text: how
 *   REFUSED   head -> node   the last record to a node that cannot join; struct dial_end
 *   END       head -> node   the last record: exit code and text; struct dial_end
 *   NOTICE    head -> node   before WELCOME: what the node waits for; struct dial_end
 *   PROOF     both           with munge, the first record: a credential over the handshake's hash
 *
 * Engines without descriptors. The psk is a hash of the user's secret, or zeros.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "wire/noise/noise.h"

enum {
        DIAL_MAGIC = 8,
        DIAL_GREETING = DIAL_MAGIC + NOISE_GREETING, /* bytes that open the stream, each way */
        DIAL_DATA_MAX = 32 << 10,                    /* bytes of DATA in a record */
        DIAL_SECRET_MIN = 16,                        /* characters */
        DIAL_NAME_MAX = 64,
        DIAL_RETRY = EX_TEMPFAIL,
};

enum dial_type {
        DIAL_JOIN = 1,
        DIAL_WELCOME,
        DIAL_DATA,
        DIAL_EXIT,
        DIAL_REFUSED,
        DIAL_END,
        DIAL_NOTICE,
        DIAL_PROOF
};

struct dial_stream {
        struct noise_handshake handshake; /* zeroed after the greetings */
        uint8_t hash[NOISE_HASH];         /* of the handshake, after the greetings */
        struct noise_cipher send, receive;
};

/* Makes the psk of a secret of DIAL_SECRET_MIN characters or more. */
void dial_psk(uint8_t to[NOISE_KEY], const char *secret);

/* The node's side: writes its greeting, and takes the head's. -EPROTO: another service answered;
 * -EBADMSG: the head has another secret. */
void dial_greet(struct dial_stream *s, const uint8_t psk[NOISE_KEY], uint8_t out[DIAL_GREETING]);
int dial_take_answer(struct dial_stream *s, const uint8_t in[DIAL_GREETING]);
/* The head's side: takes the node's greeting and writes the answer. -EPROTO: another protocol;
 * -EBADMSG: another secret. Nothing is proved before the first record opens. */
int dial_answer(struct dial_stream *s, const uint8_t psk[NOISE_KEY],
                const uint8_t in[DIAL_GREETING], uint8_t out[DIAL_GREETING]);

/* Appends records with @len bytes in all: one, but for DATA as many as needed. */
void dial_put(struct dial_stream *s, enum dial_type type, const void *body, size_t len,
              struct buf *out);

struct dial_record {
        uint8_t type;
        const unsigned char *body; /* lent by the buffer until it changes */
        size_t len, whole;         /* of the body; of the record on the wire */
};

/* Opens the record at the front of @in. 1: @ret is whole (then call buf_consume() with ret->whole),
 * 0: more bytes are needed, -EBADMSG: the record is not of this stream, which is of no use any
 * more. */
int dial_take(struct dial_stream *s, struct buf *in, struct dial_record *ret);

struct dial_join {
        uint32_t version;         /* MSG_VERSION */
        uint32_t rank;            /* of the node */
        uint32_t nodes;           /* in the job, as this node was told */
        char name[DIAL_NAME_MAX]; /* host name: letters, digits, dots, dashes and underscores */
};

/* The name may hold other bytes when encoded: they become underscores. -EPROTO: malformed. */
void dial_join_put(struct dial_stream *s, const struct dial_join *m, struct buf *out);
int dial_join_decode(struct dial_join *m, const struct dial_record *r);

struct dial_end {
        uint8_t code;    /* exit code of the job; DIAL_RETRY in REFUSED: dial again */
        char text[1024]; /* the verdict or reason, printable */
};

/* @type is DIAL_END, DIAL_REFUSED or DIAL_NOTICE. */
void dial_end_put(struct dial_stream *s, enum dial_type type, const struct dial_end *m,
                  struct buf *out);
/* -EPROTO: of another type, or malformed. */
int dial_end_decode(struct dial_end *m, const struct dial_record *r);
