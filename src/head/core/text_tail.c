/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/text_tail.h"

#include <string.h>

#include "base/macros.h"

void text_tail_add(char *to, size_t size, const char *text, size_t len)
{
        size_t have = strlen(to), taken = MIN(len, size - 1);
        size_t drop = have + taken > size - 1 ? have + taken - (size - 1) : 0;

        memmove(to, to + drop, have - drop);
        have -= drop;
        for (text += len - taken; taken; taken--, text++)
                if (*text && *text != '\r')
                        to[have++] = *text;
        to[have] = '\0';
}

void text_one_line(char *text)
{
        for (text += strcspn(text, "\r\n"); *text; text += strcspn(text, "\r\n"))
                *text++ = ' ';
}
