/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key line: the words of a line with a public key, as in known_hosts and RevokedHostKeys
 *
 * The key itself is base64 of a blob in the encoding of RFC 4253, 6.6: a sequence of strings, each
 * behind a length of 4 bytes, the type, then the numbers of the key. A certificate
 * (PROTOCOL.certkeys of OpenSSH) has the type, a nonce, the numbers, and more. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the next word of a line, ended with a NUL in place; NULL: there is none. */
char *key_line_word(char **line);

/* Decodes the base64 of a public key into a malloc'ed blob. NULL: malformed, longer than any key,
 * or, unless @type is NULL, no key that begins with @type. */
unsigned char *key_line_blob(const char *base64, const char *type, size_t *ret_len);

/* A public key or certificate. */
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
