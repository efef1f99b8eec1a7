/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reason_lines: the newest output of a program as lines of plain text
 *
 * Lines are as on a terminal: without escape sequences and without text overwritten after a
 * carriage return. Prefixes of launchers before each line ("[rank3]: " of PyTorch, "(pid=4711) " of
 * Ray) and blanks at the end are dropped. Any bytes are fine. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct reason_lines {
        char *text;
        char **v; /* into @text; "" = a blank line */
        size_t n;
};

void reason_lines_read(struct reason_lines *ret, const char *words);
void reason_lines_finish(struct reason_lines *l);

/* Returns the next line at or after @from with any text, l->n = none. */
size_t reason_lines_next(const struct reason_lines *l, size_t from);
/* Whether @text has one of the @n phrases. */
bool reason_has_phrase(const char *text, const char *const *phrases, size_t n);
/* Returns the number of blanks before a line's text. */
size_t reason_lines_indent(const char *line);
