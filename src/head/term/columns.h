/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: the width of a text on a terminal, and the width of the terminal
 *
 * Wide characters take two columns, combining characters none; bytes that form no character of the
 * locale count as one column each. Pure, but for those of a terminal.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Returns the width of @n bytes; colours and other ESC [ sequences have none. */
size_t columns_count(const char *s, size_t n);

/* Returns how many of @n bytes, in whole characters and sequences, fit into @columns. */
size_t columns_fitting(const char *s, size_t n, size_t columns);

/* Moves the offset @at of a UTF-8 text to the start of its character. */
size_t columns_char_start(const char *s, size_t at);

/* Appends @s, at most @columns wide: a longer text loses its middle, "gpu-long...-b.example". */
void columns_shorten(struct buf *to, const char *s, size_t columns);

/* Appends @s, at most @columns wide: a longer text loses its end and has an ellipsis, behind a word
 * if a word ends in the second half of what fits. */
void columns_cut(struct buf *to, const char *s, size_t columns);

/* Appends @text; a line that would pass @columns is broken at a blank, and goes on behind @indent
 * blanks. The caller has filled @at columns of the first line. Words wider than a line are broken.
 */
void columns_fold(struct buf *to, const char *text, size_t columns, size_t at, size_t indent);

/* Returns the width of the terminal at @fd; 80 if unknown. */
size_t columns_of_terminal(int fd);
/* Returns its height; 24 if unknown. */
size_t columns_rows_of_terminal(int fd);
