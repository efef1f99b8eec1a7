/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line_fold: equal lines of several ranks become one (--fold)
 *
 * A line is held until the owner ends the line by time, rank or all; meanwhile the same line of
 * other ranks joins. The order of ends keeps the order of each rank; lines of different ranks may
 * change places. A line written by all ranks ends as soon as no older line is held. At most 256
 * lines and @max bytes of text are held; beyond, the oldest ends. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"

enum { LINE_FOLD_US = 200000 }; /* how long a line is held */

struct folded_line {
        int64_t us;   /* when the first rank wrote it; any clock */
        uint8_t kind; /* only lines of the same kind fold: the stream */
        const char *text;
        size_t len;
        struct intlist ranks; /* ascending */
};

typedef void line_fold_end_fn(void *ctx, const struct folded_line *line);

struct line_fold;

/* @n_ranks: more than any rank; @n_all: ranks whose lines come. */
struct line_fold *line_fold_create(int n_ranks, int n_all, size_t max, line_fold_end_fn *end,
                                   void *ctx);
void line_fold_destroy(struct line_fold *f); /* NULL is fine; what is held is dropped */

/* Copies the text. May end lines before. */
void line_fold_add(struct line_fold *f, int64_t us, int rank, uint8_t kind, const void *text,
                   size_t len);
void line_fold_end_until(struct line_fold *f, int64_t us); /* lines that began then or before */
void line_fold_end_rank(struct line_fold *f, int rank);    /* all lines of the rank */
void line_fold_end_all(struct line_fold *f);
/* Returns when the line began that ends next, INT64_MAX = no line is held. */
int64_t line_fold_oldest(const struct line_fold *f);
