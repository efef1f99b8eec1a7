/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise: Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b, two messages and then two encrypted directions
 *
 * The Noise Protocol Framework, revision 34 (noiseprotocol.org/noise.html), for one pattern: no
 * side has a lasting key, both know a secret of 32 bytes (the psk), and every connection gets keys
 * of its own.
 *
 *   -> psk, e      the initiator; a wrong psk fails here, after hashes alone
 *   <- e, ee       the responder
 *
 * The first message can be replayed: a peer is proved to know the psk NOW by the first sealed
 * message that opens. No descriptors; primitives of libsodium, of which sodium_init() must have
 * been called.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        NOISE_KEY = 32, /* bytes of the psk, and of keys */
        NOISE_HASH = 64,
        NOISE_TAG = 16,                         /* bytes that sealing adds */
        NOISE_MESSAGE_MAX = 65535,              /* of a sealed message, with the tag */
        NOISE_GREETING = NOISE_KEY + NOISE_TAG, /* a handshake message without payload */
};

struct noise_cipher {
        uint8_t key[NOISE_KEY];
        uint64_t nonce; /* of the next message */
};

struct noise_handshake {
        bool initiator;
        uint8_t chain[NOISE_HASH], hash[NOISE_HASH];
        struct noise_cipher cipher;
        uint8_t secret[NOISE_KEY], public[NOISE_KEY]; /* our ephemeral key */
        uint8_t peer[NOISE_KEY];                      /* theirs */
};

/* Begins a handshake. Both sides give the same @psk and @prologue. @secret is the ephemeral key for
 * test vectors; NULL makes a fresh one, as everything but a test must. */
void noise_begin(struct noise_handshake *s, bool initiator, const uint8_t psk[NOISE_KEY],
                 const void *prologue, size_t prologue_len, const uint8_t *secret);

/* Write the message of this side with @len bytes of payload to @out, which has room for @len +
 * NOISE_GREETING bytes. The responder: after noise_read(). 0, or -EBADMSG: the peer's key is no
 * point that yields a secret. */
int noise_write(struct noise_handshake *s, const void *payload, size_t len, uint8_t *out);
/* Reads the peer's message of @len bytes and writes its payload, @len - NOISE_GREETING bytes, to
 * @out. -EBADMSG: it is too short, or another psk, prologue or handshake made it; @s is of no use
 * any more. */
int noise_read(struct noise_handshake *s, const uint8_t *message, size_t len, uint8_t *out);

/* Ends the handshake: the ciphers of what this side sends and receives. Wipes @s. */
void noise_split(struct noise_handshake *s, struct noise_cipher *ret_send,
                 struct noise_cipher *ret_receive);

/* Encrypts @len <= NOISE_MESSAGE_MAX - NOISE_TAG bytes to @out, @len + NOISE_TAG bytes. The arrays
 * may be the same. */
void noise_seal(struct noise_cipher *c, const void *plain, size_t len, uint8_t *out);
/* Decrypts a message of @len bytes to @out, @len - NOISE_TAG bytes; the arrays may be the same.
 * -EBADMSG: it is too short, was changed, repeated, or left out. */
int noise_open(struct noise_cipher *c, const uint8_t *message, size_t len, uint8_t *out);
