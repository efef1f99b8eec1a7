/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/json_text.h"

#include <stdlib.h>

#include "base/memory.h"

json_t *json_text(const char *text)
{
        json_t *j = text ? json_string(text) : json_null();
        char *clean;

        if (j)
                return j;
        clean = xstrdup(text);
        for (char *c = clean; *c; c++)
                if ((unsigned char)*c >= 0x80)
                        *c = '?';
        j = json_string(clean);
        free(clean);
        return j;
}
