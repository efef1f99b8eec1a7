/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top rate: how fast the steps of a run are, over its last frames
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TOP_RATE_FRAMES = 64, TOP_SPARK_BARS = 8 };

struct top_rate {
        int64_t us[TOP_RATE_FRAMES], step[TOP_RATE_FRAMES]; /* a ring */
        size_t n;                                           /* frames so far */
};

/* Takes the least step of a frame, below 0 = none. A step back (a restart) begins anew. */
void top_rate_add(struct top_rate *r, int64_t us, int64_t step);
/* Returns steps in a second: over the last 10 s, or longer where steps take longer; 0 = not known.
 */
double top_rate_now(const struct top_rate *r);
/* Writes the rates of the last frames as bars of equal times, "▃▅▆", the newest last; "" = too few.
 */
void top_rate_spark(const struct top_rate *r, char *to, size_t size);
