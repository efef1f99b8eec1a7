/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printable: untrusted text made harmless for a terminal
 *
 * Ranks, nodes, servers and files are not trusted with the terminal: control bytes, broken UTF-8
 * and characters that change the direction or the visibility of text are written as escapes. This
 * includes newlines, so a text stays one line. A second pass changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

/* Columns of untrusted text; longer text is cut with an ellipsis. */
enum {
        PRINTABLE_NOTE = 40,   /* in a cell of a table */
        PRINTABLE_QUOTE = 120, /* in a sentence, such as the verdict */
        PRINTABLE_ROW = 300,   /* in a row of its own, such as a line of stderr */
        PRINTABLE_LINE = 2000, /* a whole line of a message or of the log */
};

/* Decodes the UTF-8 sequence at @s. Returns the length, 0 = not valid (RFC 3629). */
size_t printable_decode(const unsigned char *s, size_t len, uint32_t *ret_char);
/* Whether a character changes the direction of text (Unicode UAX 9), or ends a line or paragraph.
 */
bool printable_turns_text(uint32_t c);

/* Appends @text and returns the width in columns. @to may be NULL: only measure. */
size_t printable_put(struct buf *to, const char *text, size_t len);

/* The same for at most @columns; longer text is cut and ends with an ellipsis. */
void printable_cut(struct buf *to, const char *text, size_t len, size_t columns);

/* The ellipsis: "...", in UTF-8 one character. */
const char *printable_ellipsis(void);

/* Returns @text in printable form, cut in the same way, for free(). */
char *printable_text(const char *text, size_t columns);

/* Replaces in a text without escapes, such as a name, each byte to be escaped by `?`. */
void printable_mask(char *text);
/* Marks a text as cut when the text fills the buffer, as snprintf() leaves a longer text: writes
 * "..." behind the last whole character. */
void printable_end(char *text, size_t size);
/* Appends @len bytes of @text to the string in @to, a buffer of @size bytes, and drops from the
 * front as many bytes as do not fit: banners are at the start of stderr, the reason is at the end.
 * Carriage returns and zero bytes are left out; others stay as they are. */
void printable_keep_tail(char *to, size_t size, const char *text, size_t len);
/* Replaces line ends by blanks: a text of a server must not look like several rows of a message. */
void printable_one_line(char *text);
/* Writes the lines of @text, each in printable form. Errors are those of @to. */
void printable_write(FILE *to, const char *text, size_t len);
