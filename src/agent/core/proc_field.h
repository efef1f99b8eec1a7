/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word: the n-th word of a line of /proc
 *
 * In place of sscanf(), which would bring 90 kB of numbers in every format to every node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Where the @n-th word (from 0) between blanks begins; NULL when there are fewer. */
static inline const char *word_at(const char *line, size_t n)
{
        for (line += strspn(line, " \t"); n && *line; n--) {
                line += strcspn(line, " \t\n");
                line += strspn(line, " \t\n");
        }
        return *line && *line != '\n' ? line : NULL;
}

/* False when there is no such word or it does not begin with a number. */
static inline bool word_number(const char *line, size_t n, uint64_t *ret)
{
        const char *word = word_at(line, n);
        char *end;

        if (!word)
                return false;
        *ret = strtoull(word, &end, 10);
        return end != word;
}
