/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh/files/key_line.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BASE64_MAX 65536

char *key_line_word(char **line)
{
        char *word;

        do
                word = strsep(line, " \t\r");
        while (word && !*word);
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
                good = *ret_len > 4 + type_len && blob[0] == 0 && blob[1] == 0 &&
                       (size_t)(blob[2] << 8 | blob[3]) == type_len &&
                       memcmp(blob + 4, type, type_len) == 0;
        if (good)
                return blob;
        free(blob);
        return NULL;
}
