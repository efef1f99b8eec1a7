/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step rate: how fast the steps of a run are
 *
 * The board of ranks has the rate that live line and top show, the screen of top its course. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STEP_RATE_FRAMES = 64, STEP_RATE_BARS = 8 };

struct step_rate {
        int64_t us[STEP_RATE_FRAMES], step[STEP_RATE_FRAMES]; /* a ring */
        size_t n;                                             /* frames so far */
};

/* Takes the least step at a time, below 0 = none, unless this half of a second has one. A step back
 * (a restart) begins anew. */
void step_rate_add(struct step_rate *r, int64_t us, int64_t step);
/* Returns steps in a second: over the last 10 s, or longer where steps take longer; 0 = not known.
 */
double step_rate_now(const struct step_rate *r);
/* Writes the rates of the last frames as bars of equal times, "▃▅▆", the newest last; "" = too few.
 */
void step_rate_spark(const struct step_rate *r, char *to, size_t size);
