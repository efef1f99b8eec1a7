/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step lines: the steps of programs, read from printed lines (--progress-re)
 *
 * An extended regular expression is matched against each line of standard output and error, ended
 * by a newline or a carriage return. The first group with a decimal number is the step, the next
 * group with a number the total. Lines may come in pieces; a line longer than STEP_LINE_MAX is
 * passed over. Of lines received at once, the newest with a step counts, among the last
 * STEP_LINES_AT_ONCE. A slow expression gets a fifth of the time, and lines are passed over
 * meanwhile. Pure but for the clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { STEP_LINE_MAX = 1024, STEP_LINES_AT_ONCE = 256 };

struct step_lines;

/* Gets the step of a line; @total 0 = unknown. */
typedef void (*step_found)(void *ctx, int rank, int64_t step, int64_t total);

/* Returns 0, or with @err -EINVAL: the expression is wrong, or has no group; -EDOM: it takes too
 * long (pattern.h). */
int step_lines_check(const char *re, struct error *err);

/* @re has passed step_lines_check(), and is borrowed. */
struct step_lines *step_lines_create(const char *re, int ranks, step_found found, void *ctx);
/* Takes the next bytes of a stream (MSG_STDOUT, MSG_STDERR). NULL is fine, here and below. */
void step_lines_put(struct step_lines *s, int rank, uint8_t stream, const void *data, size_t len);
/* Whether lines came, and no step: the expression fits none. */
bool step_lines_missed(const struct step_lines *s);
void step_lines_destroy(struct step_lines *s);
