/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redraw: lines drawn repeatedly, as by progress bars
 *
 * A progress bar writes a carriage return and the next state, often for minutes without a newline.
 * These functions find the states in the bytes of an unfinished line. A carriage return at the end
 * is never counted, as it may belong to a CR LF. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns the length of @p without trailing carriage returns. */
size_t redraw_body(const unsigned char *p, size_t n);

/* Finds the last carriage return followed by text, -1 = none. A whole state lies before, a state
 * that may still grow behind. */
ssize_t redraw_last(const unsigned char *p, size_t n);

/* Returns how many bytes at the beginning are states replaced by a later whole state. */
size_t redraw_replaced(const unsigned char *p, size_t n);

/* Whether the text is blanks only, which erase a bar. */
bool redraw_is_blank(const unsigned char *p, size_t n);
