/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#include "base/sha256_private.h"

enum { BLOCK = 64, LEN_AT = 56 };

const uint32_t sha256_k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
        return x >> n | x << (32 - n);
}

static uint32_t get32(const unsigned char *p)
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(unsigned char *p, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void expand(uint32_t w[64], const unsigned char *p)
{
        for (int i = 0; i < 16; i++)
                w[i] = get32(p + 4 * i);
        for (int i = 16; i < 64; i++) {
                uint32_t a = w[i - 15], b = w[i - 2];

                w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
                       (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
        }
}

/* The names are the standard's. */
static void mix(uint32_t h[8], const unsigned char *p)
{
        uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], hh = h[7];
        uint32_t w[64], t1, t2;

        expand(w, p);
        for (int i = 0; i < 64; i++) {
                t1 = hh + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
                     sha256_k[i] + w[i];
                t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
                hh = g, g = f, f = e, e = d + t1;
                d = c, c = b, b = a, a = t1 + t2;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d;
        h[4] += e, h[5] += f, h[6] += g, h[7] += hh;
}

void sha256_mix_any(uint32_t h[8], const unsigned char *p, size_t n)
{
        for (; n; n--, p += BLOCK)
                mix(h, p);
}

static void mix_blocks(struct sha256 *s, const unsigned char *p, size_t n)
{
        if (s->fast)
                sha256_mix_x86(s->h, p, n);
        else
                sha256_mix_any(s->h, p, n);
}

void sha256_begin(struct sha256 *s)
{
        static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

        memcpy(s->h, start, sizeof(start));
        s->len = 0;
        s->fast = sha256_can_x86();
}

void sha256_add(struct sha256 *s, const void *data, size_t n)
{
        const unsigned char *p = data;

        while (n) {
                size_t at = s->len % BLOCK, part = MIN(n, BLOCK - at);

                if (!at && n >= BLOCK) {
                        part = n - n % BLOCK;
                        mix_blocks(s, p, part / BLOCK);
                } else {
                        memcpy(s->block + at, p, part);
                        if (at + part == BLOCK)
                                mix_blocks(s, s->block, 1);
                }
                s->len += part;
                p += part;
                n -= part;
        }
}

void sha256_end(struct sha256 *s, unsigned char to[SHA256_BYTES])
{
        static const unsigned char pad[BLOCK] = { 0x80 };
        size_t at = s->len % BLOCK;
        unsigned char bits[8];

        put32(bits, (uint32_t)(s->len >> 29));
        put32(bits + 4, (uint32_t)(s->len << 3));
        sha256_add(s, pad, at < LEN_AT ? LEN_AT - at : BLOCK + LEN_AT - at);
        sha256_add(s, bits, sizeof(bits));
        for (int i = 0; i < 8; i++)
                put32(to + 4 * i, s->h[i]);
}

void sha256(unsigned char to[SHA256_BYTES], const void *data, size_t n)
{
        struct sha256 s;

        sha256_begin(&s);
        sha256_add(&s, data, n);
        sha256_end(&s, to);
}
