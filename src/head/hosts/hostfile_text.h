/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfile text: the text of a hostfile or of -w, its lines, and messages with places
 *
 * Pure. Not for two threads on one text or its diags.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "head/hosts/range.h"
#include "head/term/diag.h"

struct hostfile_text {
        struct diags *diags;
        const char *file, *text; /* borrowed; the text needs no NUL at its end */
        size_t len;
        bool list;              /* -w: a single line without a number; errors exit 64, else 65 */
        char *plain;            /* a copy, for comments to be blanked out; ends with a NUL */
        size_t *lines, n_lines; /* where each line starts */
        int line;               /* current line, from 1: the place of errors */
        size_t errors;
};

void hostfile_text_init(struct hostfile_text *t, const char *file, const char *text, size_t len,
                        struct diags *d);
void hostfile_text_finish(struct hostfile_text *t);

/* Rejects binary files and UTF-16 with a single error. 0 or -EINVAL. */
int hostfile_text_check(struct hostfile_text *t);
/* Makes @plain, where comments are blanks and offsets stay. A comment without end is an error. */
void hostfile_text_blank_comments(struct hostfile_text *t);

/* Returns the end of @line, without the newline. */
size_t hostfile_text_line_end(const struct hostfile_text *t, int line);

/* Adds an error at @at of the current line, shown with carets and, unless NULL, a @label. Beyond a
 * hundred errors are only counted: NULL, which the diag_* functions take. */
struct diag *hostfile_text_error(struct hostfile_text *t, int id, struct text_range at,
                                 const char *label, const char *fmt, ...) PRINTF(5, 6);
/* Adds @e as an error; offsets in @e count from @base. */
void hostfile_text_range_error(struct hostfile_text *t, size_t base, const struct range_error *e);
/* Adds an error without showing the line, for hostfile_text_mark() to show several places. */
struct diag *hostfile_text_bare_error(struct hostfile_text *t, int id, struct text_range at,
                                      const char *fmt, ...) PRINTF(4, 5);
/* Shows @line with marks under @at, as diag_source() does. */
void hostfile_text_mark(struct hostfile_text *t, struct diag *d, int line, struct text_range at,
                        char mark, const char *label);
/* Notes how many errors were only counted. */
void hostfile_text_finish_errors(struct hostfile_text *t);
