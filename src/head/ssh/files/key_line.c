/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words are cut in place. A blob is a type and numbers, each with a length in front; a certificate
 * has the same numbers behind its own type and a nonce, so key_blob_is_of() compares from the
 * numbers on. Lengths come from files of others and are checked against the end each time.
 */
#include "head/ssh/files/key_line.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BASE64_MAX 65536
#define CERT       "-cert-v01@openssh.com"

char *key_line_word(char **line)
{
        char *word;

        do
                word = strsep(line, " \t\r");
        while (word && !*word); /* several blanks in a row */
        return word;
}

unsigned char *key_line_blob(const char *base64, const char *type, size_t *ret_len)
{
        size_t size = strlen(base64), type_len = type ? strlen(type) : 0;
        unsigned char *blob;
        bool good;

        if (size > BASE64_MAX)
                return NULL;
        blob = xcalloc(1, size + 1);
        good = sodium_base642bin(blob, size, base64, size, NULL, ret_len, NULL,
                                 sodium_base64_VARIANT_ORIGINAL) == 0;
        if (good && type)
                /* The blob names its type as well, and both must agree. */
                good = *ret_len > 4 + type_len && blob[0] == 0 && blob[1] == 0 &&
                       (size_t)(blob[2] << 8 | blob[3]) == type_len &&
                       memcmp(blob + 4, type, type_len) == 0;
        if (good)
                return blob;
        free(blob);
        return NULL;
}

unsigned key_blob_u32(const unsigned char *p)
{
        return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

size_t key_blob_skip(struct key_blob b, int n)
{
        size_t at = 0;

        for (; n; n--) {
                /* In this order, so that nothing wraps around. */
                if (b.len - at < 4 || key_blob_u32(b.data + at) > b.len - at - 4)
                        return 0;
                at += 4 + key_blob_u32(b.data + at);
        }
        return at;
}

bool key_blob_is_of(struct key_blob b, struct key_blob key)
{
        size_t type = key_blob_skip(key, 1), at = key_blob_skip(b, 2);

        if (b.len == key.len && memcmp(b.data, key.data, key.len) == 0)
                return true;
        /* "ssh-ed25519-cert-v01@openssh.com" is of "ssh-ed25519"; the numbers are the same. */
        return type && at && key_blob_u32(b.data) == type - 4 + strlen(CERT) &&
               memcmp(b.data + 4, key.data + 4, type - 4) == 0 &&
               memcmp(b.data + type, CERT, strlen(CERT)) == 0 && b.len - at >= key.len - type &&
               memcmp(b.data + at, key.data + type, key.len - type) == 0;
}
