/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: how wide a text is on a terminal, and how wide the terminal is
 *
 * Wide characters take two columns, combining ones none; bytes that are no character of the locale
 * count as one column each. Pure, but for columns_of_terminal().
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Width of @n bytes; colours and other ESC [ sequences have none. */
size_t columns_count(const char *s, size_t n);

/* How many of @n bytes, whole characters, are at most @columns wide. */
size_t columns_fitting(const char *s, size_t n, size_t columns);

/* Appends @s, at most @columns wide: what is too long loses its middle, "gpu-long...-b.example". */
void columns_shorten(struct buf *to, const char *s, size_t columns);

/* Width of the terminal at @fd; 80 when it does not tell. */
size_t columns_of_terminal(int fd);
