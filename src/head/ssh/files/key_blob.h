/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key blob: a public key or certificate in the encoding of RFC 4253, 6.6
 *
 * A sequence of strings, each behind a length of 4 bytes: the type, then the numbers of the key. A
 * certificate (PROTOCOL.certkeys of OpenSSH) has the type, a nonce, the numbers, and more. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct key_blob {
        const unsigned char *data;
        size_t len;
};

/* Reads a number of 4 bytes, the highest first. */
unsigned key_blob_u32(const unsigned char *p);

/* Returns the offset behind the first @n strings; 0 = the blob is too short. */
size_t key_blob_skip(struct key_blob b, int n);

/* Tells whether @b is the key itself, or a certificate of it. */
bool key_blob_is_of(struct key_blob b, struct key_blob key);
