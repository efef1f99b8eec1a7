/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the specification in section 5 stand beside the functions: MixHash, MixKey,
 * MixKeyAndHash, EncryptAndHash, DecryptAndHash, Split. All keys come from HKDF (section 4.3) over
 * HMAC-BLAKE2b, which libsodium does not have: crypto_generichash is BLAKE2b, and HMAC is built on
 * it here.
 */
#include "wire/noise/noise.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/macros.h"

static const char protocol_name[] = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b";

enum { HASH_BLOCK = 128 /* BLAKE2b's, for HMAC */ };

/* --- hashes ----------------------------------------------------------------------------------- */

struct noise_piece {
        const void *p;
        size_t len;
};

/* Hashes two pieces; an empty piece adds nothing. */
static void hash_pieces(uint8_t out[NOISE_HASH], struct noise_piece a, struct noise_piece b)
{
        crypto_generichash_state s;

        crypto_generichash_init(&s, NULL, 0, NOISE_HASH);
        crypto_generichash_update(&s, a.p, a.len);
        crypto_generichash_update(&s, b.p, b.len);
        crypto_generichash_final(&s, out, NOISE_HASH);
        sodium_memzero(&s, sizeof(s));
}

/* HMAC (RFC 2104) of two pieces with a key as long as a hash. */
static void hash_with_key(uint8_t out[NOISE_HASH], const uint8_t key[NOISE_HASH],
                          struct noise_piece a, struct noise_piece b)
{
        uint8_t pad[HASH_BLOCK], inner[NOISE_HASH];
        crypto_generichash_state s;

        for (size_t i = 0; i < sizeof(pad); i++)
                pad[i] = (i < NOISE_HASH ? key[i] : 0) ^ 0x36;
        crypto_generichash_init(&s, NULL, 0, NOISE_HASH);
        crypto_generichash_update(&s, pad, sizeof(pad));
        crypto_generichash_update(&s, a.p, a.len);
        crypto_generichash_update(&s, b.p, b.len);
        crypto_generichash_final(&s, inner, sizeof(inner));
        /* Turns the inner pad into the outer pad: the key is XORed already. */
        for (size_t i = 0; i < sizeof(pad); i++)
                pad[i] ^= 0x36 ^ 0x5c;
        hash_pieces(out, (struct noise_piece){ pad, sizeof(pad) },
                    (struct noise_piece){ inner, sizeof(inner) });
        sodium_memzero(pad, sizeof(pad));
        sodium_memzero(inner, sizeof(inner));
        sodium_memzero(&s, sizeof(s));
}

/* HKDF: @n <= 3 outputs from @chain and @input. */
static void derive_keys(uint8_t out[][NOISE_HASH], uint8_t n, const uint8_t chain[NOISE_HASH],
                        struct noise_piece input)
{
        const struct noise_piece none = { "", 0 };
        uint8_t key[NOISE_HASH];

        hash_with_key(key, chain, input, none);
        for (uint8_t i = 1; i <= n; i++)
                /* T(i) = HMAC(key, T(i - 1) | i), as in RFC 5869. */
                hash_with_key(out[i - 1], key,
                              i == 1 ? none : (struct noise_piece){ out[i - 2], NOISE_HASH },
                              (struct noise_piece){ &i, 1 });
        sodium_memzero(key, sizeof(key));
}

/* --- the state of a handshake ----------------------------------------------------------------- */

/* MixHash */
static void mix_hash(struct noise_handshake *s, const void *p, size_t len)
{
        hash_pieces(s->hash, (struct noise_piece){ s->hash, NOISE_HASH },
                    (struct noise_piece){ p, len });
}

static void set_cipher_key(struct noise_cipher *c, const uint8_t *key)
{
        memcpy(c->key, key, NOISE_KEY);
        c->nonce = 0;
}

/* MixKey */
static void mix_key(struct noise_handshake *s, const void *p, size_t len)
{
        uint8_t out[2][NOISE_HASH];

        derive_keys(out, 2, s->chain, (struct noise_piece){ p, len });
        memcpy(s->chain, out[0], NOISE_HASH);
        set_cipher_key(&s->cipher, out[1]);
        sodium_memzero(out, sizeof(out));
}

/* MixKeyAndHash, the token psk */
static void mix_secret(struct noise_handshake *s, const uint8_t psk[NOISE_KEY])
{
        uint8_t out[3][NOISE_HASH];

        derive_keys(out, 3, s->chain, (struct noise_piece){ psk, NOISE_KEY });
        memcpy(s->chain, out[0], NOISE_HASH);
        mix_hash(s, out[1], NOISE_HASH);
        set_cipher_key(&s->cipher, out[2]);
        sodium_memzero(out, sizeof(out));
}

/* The token e: with a psk the public key goes into the keys, too (section 9.2). */
static void mix_public_key(struct noise_handshake *s, const uint8_t key[NOISE_KEY])
{
        mix_hash(s, key, NOISE_KEY);
        mix_key(s, key, NOISE_KEY);
}

/* The token ee. -EBADMSG: the peer's key has no proper secret. */
static int mix_shared_key(struct noise_handshake *s)
{
        uint8_t shared[NOISE_KEY];
        int r = crypto_scalarmult(shared, s->secret, s->peer) == 0 ? 0 : -EBADMSG;

        if (r == 0)
                mix_key(s, shared, sizeof(shared));
        sodium_memzero(shared, sizeof(shared));
        return r;
}

/* --- messages --------------------------------------------------------------------------------- */

/* The nonce: four bytes zero, then the number in little-endian order (section 12.3). */
static void write_nonce(uint8_t to[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t n)
{
        memset(to, 0, 4);
        for (int i = 0; i < 8; i++)
                to[4 + i] = (uint8_t)(n >> (8 * i));
}

static void seal_with(struct noise_cipher *c, struct noise_piece ad, const void *plain, size_t len,
                      uint8_t *out)
{
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

        write_nonce(nonce, c->nonce++);
        crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plain, len, ad.p, ad.len, NULL, nonce,
                                                  c->key);
}

static int open_with(struct noise_cipher *c, struct noise_piece ad, const uint8_t *message,
                     size_t len, uint8_t *out)
{
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

        if (len < NOISE_TAG)
                return -EBADMSG;
        /* The number goes up only after a message of the peer: a forged message leaves the cipher
         * as it was. */
        write_nonce(nonce, c->nonce);
        if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, message, len, ad.p, ad.len,
                                                      nonce, c->key) < 0)
                return -EBADMSG;
        c->nonce++;
        return 0;
}

void noise_seal(struct noise_cipher *c, const void *plain, size_t len, uint8_t *out)
{
        seal_with(c, (struct noise_piece){ NULL, 0 }, plain, len, out);
}

int noise_open(struct noise_cipher *c, const uint8_t *message, size_t len, uint8_t *out)
{
        return open_with(c, (struct noise_piece){ NULL, 0 }, message, len, out);
}

/* --- the handshake ---------------------------------------------------------------------------- */

void noise_begin(struct noise_handshake *s, bool initiator, const uint8_t psk[NOISE_KEY],
                 const void *prologue, size_t prologue_len, const uint8_t *secret)
{
        *s = (struct noise_handshake){ .initiator = initiator };
        if (secret)
                memcpy(s->secret, secret, NOISE_KEY);
        else
                randombytes_buf(s->secret, NOISE_KEY);
        memcpy(s->hash, protocol_name, strlen(protocol_name)); /* shorter than a hash */
        memcpy(s->chain, s->hash, NOISE_HASH);
        mix_hash(s, prologue, prologue_len);
        mix_secret(s, psk);
}

int noise_write(struct noise_handshake *s, const void *payload, size_t len, uint8_t *out)
{
        crypto_scalarmult_base(s->public, s->secret);
        memcpy(out, s->public, NOISE_KEY);
        mix_public_key(s, s->public);
        if (!s->initiator && mix_shared_key(s) < 0)
                return -EBADMSG;
        out += NOISE_KEY;
        seal_with(&s->cipher, (struct noise_piece){ s->hash, NOISE_HASH }, payload, len, out);
        mix_hash(s, out, len + NOISE_TAG);
        return 0;
}

int noise_read(struct noise_handshake *s, const uint8_t *message, size_t len, uint8_t *out)
{
        if (len < NOISE_GREETING)
                return -EBADMSG;
        memcpy(s->peer, message, NOISE_KEY);
        mix_public_key(s, s->peer);
        if (s->initiator && mix_shared_key(s) < 0)
                return -EBADMSG;
        message += NOISE_KEY;
        len -= NOISE_KEY;
        if (open_with(&s->cipher, (struct noise_piece){ s->hash, NOISE_HASH }, message, len, out) <
            0)
                return -EBADMSG;
        mix_hash(s, message, len);
        return 0;
}

void noise_split(struct noise_handshake *s, struct noise_cipher *ret_send,
                 struct noise_cipher *ret_receive)
{
        uint8_t out[2][NOISE_HASH];

        derive_keys(out, 2, s->chain, (struct noise_piece){ "", 0 });
        /* The first key belongs to the direction from the initiator. */
        set_cipher_key(ret_send, out[s->initiator ? 0 : 1]);
        set_cipher_key(ret_receive, out[s->initiator ? 1 : 0]);
        sodium_memzero(out, sizeof(out));
        sodium_memzero(s, sizeof(*s));
}
