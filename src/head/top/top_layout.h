/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top layout: the lines of `hnlaunch top` at a width
 *
 * Columns drop out in the order of their importance, columns without any value first; no line is
 * wider than the width. Lines are printable text without a newline. Pure.
 */
#pragma once

#include "base/buf.h"
#include "head/model/step_rate.h"
#include "head/top/top_frame.h"

enum top_column {
        TOP_HOST,
        TOP_RANKS,
        TOP_UP,
        TOP_STEP,
        TOP_LAG,
        TOP_WAIT,
        TOP_BUSY,
        TOP_CPU,
        TOP_MEM,
        TOP_GPU,
        TOP_GMEM,
        TOP_TEMP,
        TOP_POWER,
        TOP_NET,
        TOP_OUT,
        TOP_NOTE,
        TOP_COLUMNS,
};

struct top_layout {
        size_t width, gap;           /* of a line; between two columns */
        size_t columns[TOP_COLUMNS]; /* their widths; 0 = left out */
};

void top_layout_choose(struct top_layout *l, const struct top_frame *f, size_t width);
/* Each appends a line. @rate NULL: no frame came before. */
void top_layout_head(const struct top_frame *f, const struct step_rate *rate, size_t width,
                     struct buf *to);
/* The cause of a hang. False: none was found, and there is no line. */
bool top_layout_hang(const struct top_frame *f, size_t width, struct buf *to);
void top_layout_titles(const struct top_layout *l, struct buf *to);
void top_layout_host(const struct top_layout *l, const struct top_frame *f,
                     const struct top_frame_host *h, struct buf *to);
/* Of @n hosts, from place @first of @order on, which are alike. */
void top_layout_alike(const struct top_frame *f, const size_t *order, size_t first, size_t n,
                      struct buf *to);
void top_layout_rank(const struct top_layout *l, const struct top_frame *f,
                     const struct top_frame_rank *r, struct buf *to);
/* The whole as a table of lines, hosts in the order of @order; the ranks too if there is one host.
 */
void top_layout_table(const struct top_frame *f, const size_t *order, size_t width, struct buf *to);
