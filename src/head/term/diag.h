/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diag: error messages with place, cause and next step, in the manner of rustc
 *
 *   error[HN110]: unknown key `slot`
 *     --> hosts.txt:3:8
 *      |
 *    3 | gpu003 slot=8
 *      |        ^^^^ did you mean `slots`?
 *      |
 *      = note: ...
 *      = help: ...
 *
 * Parsers collect all diags of a file; main prints them and ends with the verdict line. The bars
 * between the blocks come by themselves. Control bytes, broken UTF-8 and characters that turn text
 * around are shown escaped everywhere. The diag_* functions take NULL for @d and do nothing.
 * Numbers: 1xx hosts and hostfile, 2xx reaching nodes, 3xx plan and nodes, 4xx rendezvous,
 * 5xx workers, 6xx preflight, 7xx command line and configuration, 9xx the head itself.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/macros.h"

struct diag {
        int id;          /* HN number, 110 -> "HN110"; 0 = a "note" */
        int exit;        /* exit code if this is what ends the launch (sysexits, design D16) */
        bool warning;    /* "warning[HN..]" and the launch goes on */
        char *fact;      /* one sentence, lower case, no full stop */
        size_t hidden;   /* further errors of its kind that were only counted */
        struct buf body; /* what stands below the fact, until diags_print() lays it out */
};

struct diags {
        struct diag *v;
        size_t n;
};

#define DIAGS_INIT                                                                                 \
        {                                                                                          \
                0                                                                                  \
        }

void diags_finish(struct diags *d);
size_t diags_errors(const struct diags *d);                  /* without warnings */
size_t diags_hidden(const struct diags *d);                  /* errors that were only counted */
const struct diag *diags_first(const struct diags *d);       /* NULL = none */
const struct diag *diags_first_error(const struct diags *d); /* NULL = none */

/* Adds one; the pointer is valid until the next add. */
struct diag *diag_add(struct diags *d, int id, int exit_code, const char *fmt, ...) PRINTF(4, 5);
struct diag *diag_warn(struct diags *d, int id, const char *fmt, ...) PRINTF(3, 4);
/* "note: fact": an answer to a question, nothing is wrong. */
struct diag *diag_tell(struct diags *d, const char *fmt, ...) PRINTF(2, 3);

/* Notes at the last one that @n further errors in @where were only counted. */
void diags_hide(struct diags *d, size_t n, const char *where);

/* Moves all of @from to the end of @to. */
void diags_move(struct diags *to, struct diags *from);

/* " --> place"; a newline in it is escaped. */
void diag_place(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
/* The line of source with its number and carets under [col, col+len) (1-based, bytes); @label is
 * written after the carets, may be NULL. @mark is '^' (the error) or '-' (an earlier place). Line 0
 * is a text without a number, such as an option's argument. Of a long line a part is shown. The
 * same line twice in a row is shown once, with two rows of carets. */
void diag_source(struct diag *d, int line, const char *text, int col, int len, char mark,
                 const char *label);
/* "  | text": rows of evidence, one for every line of the text. Empty text is a bare bar. */
void diag_row(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
/* "  = note: text", "  = help: text"; further lines of the text are indented. */
void diag_note(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
void diag_help(struct diag *d, const char *fmt, ...) PRINTF(2, 3);

/* Writes all of them to @to, with an empty line after each when there are several. @color: bold
 * red/yellow for the head word only. */
void diags_print(const struct diags *d, FILE *to, bool color);

/* Would the text be shown as it is, without an escape? */
bool diag_is_plain(const char *text);

/* The candidate nearest to @word (edit distance <= 2 and under half its length; case does not
 * count), or NULL. */
const char *diag_did_you_mean(const char *word, const char *const *candidates, size_t n);
/* Letters that @a and @b differ in: added, left out, changed or swapped with a neighbour. */
size_t diag_distance(const char *a, const char *b);
