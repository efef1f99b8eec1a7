/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redraw: lines that a program draws again and again
 *
 * A progress bar writes a carriage return and its next state, often for minutes without a newline.
 * Here is where its states lie in the bytes of an unfinished line. A carriage return at the end is
 * never counted: it may belong to a CR LF. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Bytes of @p without the carriage returns at its end. */
size_t redraw_body(const unsigned char *p, size_t n);

/* Where the last carriage return stands that text follows, -1 = there is none. Before it lies a
 * state that is whole, behind it one that may still grow. */
ssize_t redraw_last(const unsigned char *p, size_t n);

/* How many bytes at the beginning are states which a later whole one has replaced. */
size_t redraw_replaced(const unsigned char *p, size_t n);

/* Nothing but blanks: how a bar is wiped away. */
bool redraw_is_blank(const unsigned char *p, size_t n);
