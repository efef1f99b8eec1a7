/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host text: the text of a hostfile or of -w, with its lines, and messages that point into it
 *
 * Pure. Not for two threads on one text or its diags.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "head/hosts/range.h"
#include "head/term/diag.h"

struct span {
        size_t at, len; /* in the text */
};

struct hostfile_text {
        struct diags *diags;
        const char *file, *text; /* borrowed; the text needs no NUL at its end */
        size_t len;
        bool list;              /* -w: one line without a number; errors exit 64, else 65 */
        char *plain;            /* a copy, for comments to be blanked out; ends with a NUL */
        size_t *lines, n_lines; /* where each line starts */
        int line;               /* the current one, from 1: where errors are */
        size_t errors;
};

void hostfile_text_init(struct hostfile_text *t, const char *file, const char *text, size_t len,
                        struct diags *d);
void hostfile_text_finish(struct hostfile_text *t);

/* Binary files and UTF-16 end in one error, not in a thousand. 0 or -EINVAL. */
int hostfile_text_check(struct hostfile_text *t);
/* Makes @plain: comments are blanks there, offsets stay. A comment without end is an error. */
void hostfile_text_blank_comments(struct hostfile_text *t);

/* Where @line ends, without its newline. */
size_t hostfile_text_line_end(const struct hostfile_text *t, int line);

/* Adds an error at @at. Beyond a hundred they are counted only: NULL, which diag_*() take. */
struct diag *hostfile_text_complain(struct hostfile_text *t, int id, struct span at,
                                    const char *fmt, ...) PRINTF(4, 5);
/* Shows @line with marks under @at, as diag_source() does. */
void hostfile_text_point(struct hostfile_text *t, struct diag *d, int line, struct span at,
                         char mark, const char *label);
/* Both, for what is wrong in the words that start at @base. */
void hostfile_text_complain_about(struct hostfile_text *t, size_t base,
                                  const struct range_error *e);
/* Tells how many errors were counted only. */
void hostfile_text_finish_errors(struct hostfile_text *t);
