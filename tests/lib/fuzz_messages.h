/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a parser: what is written to a terminal about an input
 */
#pragma once

#include "../fuzz/fuzz.h"

#include <stdio.h>

#include "head/term/diag.h"

/* Requires that no byte of the messages controls the terminal. */
static inline void check_messages(const struct diags *d)
{
        size_t len;
        char *text;
        FILE *f = open_memstream(&text, &len);

        diags_print(d, f, false);
        fclose(f);
        for (size_t i = 0; i < len; i++)
                require(text[i] == '\n' || ((unsigned char)text[i] >= 0x20 && text[i] != 0x7f));
        free(text);
}
