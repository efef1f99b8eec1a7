/* SPDX-License-Identifier: Apache-2.0 */
#include "store/engine/key_format.h"

#include <stdio.h>

#include "base/macros.h"

const char *key_format(char *to, struct bytes key)
{
        static const char cut[] = "...";
        const unsigned char *p = key.p;
        size_t at = 0;

        for (size_t i = 0; i < key.len; i++) {
                size_t need = p[i] >= ' ' && p[i] <= '~' ? 1 : 4;

                if (at + need + sizeof(cut) > KEY_FORMAT_SIZE) {
                        at += (size_t)snprintf(to + at, KEY_FORMAT_SIZE - at, "%s", cut);
                        break;
                }
                if (need == 1)
                        to[at] = (char)p[i];
                else
                        snprintf(to + at, KEY_FORMAT_SIZE - at, "\\x%02x", p[i]);
                at += need;
        }
        to[at] = '\0';
        return to;
}

const char *store_call_name(uint8_t op)
{
        return op == STORE_BARRIER ? "barrier" : op == STORE_GATHER ? "all_gather" : "broadcast";
}
