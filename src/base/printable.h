/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printable: untrusted text made harmless for a terminal
 *
 * Ranks, nodes, servers and files are not trusted with the terminal: control bytes, broken UTF-8
 * and characters that change the direction or the visibility of text are written as escapes. This
 * includes newlines, so a text stays one line. A second pass changes nothing.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Appends @text and returns the width in columns. @to may be NULL: only measure. */
size_t printable_put(struct buf *to, const char *text, size_t len);

/* The same for at most @columns; longer text is cut and ends with an ellipsis. */
void printable_cut(struct buf *to, const char *text, size_t len, size_t columns);
