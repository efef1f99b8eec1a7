/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sha256: the hash of FIPS 180-4, for naming contents
 *
 * Own code because the static agent of every architecture needs it and nothing else of a
 * cryptographic library. tests/unit/test_sha256.c compares it with libsodium's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

struct sha256 {
        uint32_t h[8];
        uint64_t len;
        unsigned char block[64];
        bool fast; /* with the processor's own instructions */
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t n);
void sha256_end(struct sha256 *s, unsigned char to[SHA256_BYTES]); /* then begin anew */
void sha256(unsigned char to[SHA256_BYTES], const void *data, size_t n);
