/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top view: the rows of a frame as `hnlaunch top` shows them, their order, and the effect of keys
 *
 * A row is a host or, below an open host, a rank. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/top/top_frame.h"

enum top_sort {
        TOP_BY_ODDITY, /* odd hosts first */
        TOP_BY_HOST,
        TOP_BY_LAG,
        TOP_BY_WAIT,
        TOP_BY_CPU,
        TOP_BY_MEM,
        TOP_BY_GPU,
        TOP_BY_NET,
        TOP_BY_OUT,
        TOP_SORTS,
};

enum top_key {
        TOP_KEY_UP,
        TOP_KEY_DOWN,
        TOP_KEY_PAGE_UP,
        TOP_KEY_PAGE_DOWN,
        TOP_KEY_FIRST,
        TOP_KEY_LAST,
        TOP_KEY_TOGGLE, /* opens or closes the host of the row */
        TOP_KEY_OPEN,
        TOP_KEY_CLOSE,
        TOP_KEY_ALL, /* opens or closes all hosts */
        TOP_KEY_SORT,
};

enum {
        TOP_ROW_HOST = -1,
        TOP_ROW_ALIKE = -2, /* stands for several hosts with nothing odd */
};

struct top_row {
        size_t host;
        ssize_t rank; /* index in the host, or TOP_ROW_ */
        size_t alike; /* hosts of TOP_ROW_ALIKE: @host and the next ones in the order */
};

struct top_view {
        enum top_sort sort;
        char filter[64]; /* part of the names of hosts shown; "" = all */
        bool *open;      /* by number of the node */
        size_t n_open;
        bool unfolded; /* hosts with nothing odd have rows of their own */
        bool begun;    /* a frame with hosts has been seen */
        size_t *order;
        struct top_row *rows;
        size_t n_rows, cap_rows;
        size_t first, selected; /* row at the top of the page; row of the cursor */
        /* Host and rank of the cursor, once moved; at_node -1 = the first row, at_rank: as the rank
         * of a row. */
        int64_t at_node, at_rank;
};

void top_view_init(struct top_view *v);
void top_view_finish(struct top_view *v);

/* Sorts the hosts of a frame; @order has room for all hosts. */
void top_view_order(const struct top_frame *f, enum top_sort by, size_t *order);
const char *top_view_sort_name(enum top_sort by);

/* Finds the rows of a new frame, or after a change of the filter, for a page of @page rows. */
void top_view_update(struct top_view *v, const struct top_frame *f, size_t page);
void top_view_key(struct top_view *v, const struct top_frame *f, enum top_key key, size_t page);
