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

#include "base/buf.h"

/* What a stream draws again in several rows; all 0 at its beginning. */
struct redraw_rows {
        size_t n;        /* newlines of the next bytes over which the cursor will be moved up */
        bool moves;      /* it has moved the cursor up */
        bool behind;     /* and there was no text since */
        struct buf held; /* a newline, and perhaps a state behind it, over which it may move */
};

/* Returns the length of @p without trailing carriage returns. */
size_t redraw_body(const unsigned char *p, size_t n);

/* Finds the last carriage return followed by text, -1 = none. A whole state lies before, a state
 * that may still grow behind. */
ssize_t redraw_last(const unsigned char *p, size_t n);

/* Returns how many bytes at the beginning are states replaced by a later whole state. */
size_t redraw_replaced(const unsigned char *p, size_t n);

/* Appends the next bytes to @to; @n 0 = the stream has ended. What is drawn again in several rows,
 * as by rich, or by tqdm below another bar, becomes a line that is: of newlines above which the
 * cursor is moved again (ESC [ n A), and of those directly behind that, blanks are made. All bytes
 * come, but a newline of a stream that does so may come with the next ones. */
void redraw_join_rows(struct redraw_rows *r, struct buf *to, const void *p, size_t n);
void redraw_rows_finish(struct redraw_rows *r);

/* Whether the text is blanks only, which erase a bar. */
bool redraw_is_blank(const unsigned char *p, size_t n);
