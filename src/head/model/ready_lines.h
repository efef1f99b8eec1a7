/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready lines: finds the line by which a rank tells that it is ready (--ready line:)
 *
 * An extended regular expression is matched against each line of standard output and error, ended
 * by a newline or a carriage return, without escape sequences. Lines may come in pieces; of a line
 * the first READY_LINE_MAX bytes count. A slow expression misses lines (head/core/pattern.h). Pure
 * but for the clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ready_lines;

enum { READY_LINE_MAX = 1024 };

/* timed_pattern_open() accepts @re, which is borrowed. */
struct ready_lines *ready_lines_create(const char *re, int ranks);
/* Takes the next bytes of a stream. Returns whether a line of them matches. */
bool ready_lines_put(struct ready_lines *r, int rank, uint8_t stream, const void *data, size_t len);
void ready_lines_drop(struct ready_lines *r, int rank); /* frees what is left of its lines */
void ready_lines_destroy(struct ready_lines *r);        /* NULL is fine */
