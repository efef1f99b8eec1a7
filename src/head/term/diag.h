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
 * Parsers collect all diags of a file; main prints the list and ends with the verdict line. Bars
 * between the blocks are added when printing. Control bytes, broken UTF-8 and characters that
 * reverse text are escaped everywhere. The diag_* functions take NULL for @d and do nothing.
 * Numbers: 1xx hosts and hostfile, 2xx reaching nodes, 3xx plan and nodes, 4xx store and joining,
 * 5xx ranks, 6xx preflight, 7xx command line and configuration, 9xx the head itself.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/macros.h"

enum { DIAG_ROWS_AT = 6 }; /* columns in front of a row, in a message without a source */

struct diag {
        int id;          /* HN number, 110 -> "HN110"; 0 = a "note" */
        int exit;        /* exit code if this ends the launch (sysexits, decision D16) */
        bool warning;    /* "warning[HN..]" and the launch goes on */
        char *fact;      /* one sentence, lower case, no full stop */
        size_t hidden;   /* further errors, only counted */
        struct buf body; /* tagged lines below the fact; private to diag.c */
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
size_t diags_hidden(const struct diags *d);                  /* errors only counted */
const struct diag *diags_first_error(const struct diags *d); /* NULL = none */

/* Add a message; the pointer is valid until the next add. */
struct diag *diag_add(struct diags *d, int id, int exit_code, const char *fmt, ...) PRINTF(4, 5);
struct diag *diag_warn(struct diags *d, int id, const char *fmt, ...) PRINTF(3, 4);
/* Adds "note: fact", an answer without a problem. */
struct diag *diag_tell(struct diags *d, const char *fmt, ...) PRINTF(2, 3);

/* Notes at the last message that @n further errors in @where were only counted. */
void diags_hide(struct diags *d, size_t n, const char *where);

/* Moves all of @from to the end of @to. */
void diags_move(struct diags *to, struct diags *from);

/* Adds " --> place"; a newline in the text is escaped. */
void diag_place(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
/* Adds a line of source with its number, and carets under [col, col+len) (1-based, bytes), followed
 * by @label, which may be NULL. @mark is '^' (the error) or '-' (an earlier place). Line 0 is a
 * text without a number, such as an option's argument. A long line is cut. The same line twice in a
 * row is shown once, with two rows of carets. */
void diag_source(struct diag *d, int line, const char *text, int col, int len, char mark,
                 const char *label);
/* Adds "  | text": a row of evidence per line of the text. Empty text is a bare bar. */
void diag_row(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
/* The same of a row that stands on the terminal already. */
void diag_row_on_screen(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
/* Add "  = note: text", "  = help: text"; further lines of the text are indented. */
void diag_note(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
void diag_help(struct diag *d, const char *fmt, ...) PRINTF(2, 3);

/* Returns how wide a row may be on the terminal @fd; 0 = it is none. */
size_t diag_row_width(int fd);
/* Writes all messages to @to, with an empty line after each if there are several. @color: bold red
 * or yellow for the first word. */
void diags_print(const struct diags *d, FILE *to, bool color);
/* The same without the rows that stand on the terminal already. */
void diags_print_on_screen(const struct diags *d, FILE *to, bool color);

/* Returns the candidate nearest to @word (edit distance <= 2 and under half the length; case does
 * not count), or NULL. */
const char *diag_did_you_mean(const char *word, const char *const *candidates, size_t n);
/* Counts the letters in which @a and @b differ: added, removed, changed or swapped. */
size_t diag_distance(const char *a, const char *b);
