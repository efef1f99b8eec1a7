/* SPDX-License-Identifier: Apache-2.0 */
/* Text tail: the last bytes of a stream of text, such as stderr, and one line of a text */
#pragma once

#include <stddef.h>

/* Appends @len bytes of @text to the string in @to, a buffer of @size bytes, and drops from the
 * front as many bytes as do not fit: banners are at the start of stderr, the reason is at the end.
 * Carriage returns and zero bytes are left out. */
void text_tail_add(char *to, size_t size, const char *text, size_t len);

/* Replaces line ends by blanks: a text of a server must not look like several rows of a message. */
void text_one_line(char *text);
