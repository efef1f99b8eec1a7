/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diag text: messages as they are printed
 */
#pragma once

#include <stdio.h>

#include "head/term/diag.h"
#include "lib/unit.h"

/* Returns what diags_print() prints, malloc'ed. */
static inline char *diags_text(const struct diags *d, bool color)
{
        size_t len;
        char *text;
        FILE *f = open_memstream(&text, &len);

        assert_non_null(f);
        diags_print(d, f, color);
        fclose(f);
        return text;
}
