/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh/files/key_blob.h"

#include <string.h>

#define CERT "-cert-v01@openssh.com"

unsigned key_blob_u32(const unsigned char *p)
{
        return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

size_t key_blob_skip(struct key_blob b, int n)
{
        size_t at = 0;

        for (; n; n--) {
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
