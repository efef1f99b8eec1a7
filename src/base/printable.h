/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printable: the text of others, made harmless for a terminal
 *
 * Ranks, nodes, servers and files are not trusted with the terminal: control bytes, broken UTF-8
 * and characters that change the direction or the visibility of text are written as escapes. A
 * newline is one of them, so one text stays one line. Doing it twice changes nothing.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Appends @text and returns its width in columns. @to may be NULL: only measures. */
size_t printable_put(struct buf *to, const char *text, size_t len);

/* The same for at most @columns; where it is cut, an ellipsis ends it. */
void printable_cut(struct buf *to, const char *text, size_t len, size_t columns);
