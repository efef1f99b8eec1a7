/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text table: rows of cells -> lines whose columns stand below each other
 *
 * The layout is done by hnlaunch-table.so, which is loaded for the first table: a launch without
 * tables does not pay for libsmartcols. Without the module cells are not aligned (HN835, once).
 * Main thread only.
 *
 * On a terminal columns without room are left out, the one of the highest rank first; without any
 * more of those, cells are cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

enum {
        TEXT_COLUMNS_MAX = 12,
        TEXT_GAP = 2,      /* blanks between columns */
        TEXT_RIGHT = 1,    /* numbers */
        TEXT_TRUNCATE = 2, /* one column of a table, with the rest of a line */
        TEXT_NAME = 4,     /* a cell that is cut loses its middle */
};

struct text_column {
        const char *name;
        unsigned flags; /* TEXT_* */
        unsigned rank;  /* the highest is left out first; 0 = never */
        size_t least;   /* width to which cells may be cut; 0 = never */
};

struct text_table {
        const struct text_column *columns;
        size_t n_columns;
        bool hidden[TEXT_COLUMNS_MAX];
        size_t width; /* of the terminal; 0 = none: all columns, nothing is cut */
        char ***rows; /* each has @n_columns cells; NULL = empty */
        size_t n_rows, cap;
};

/* Adds a row. Returns its cells, to be set to malloc'ed texts. */
char **text_table_add(struct text_table *t);
/* Returns a line of names and one for each row, each with a newline, malloc'ed; "" without rows.
 * Cells become printable, and are cut; columns are hidden. */
char *text_table_format(struct text_table *t);
void text_table_finish(struct text_table *t); /* fits CLEANUP() */

/* Makes @widths less until @n columns fit into @width; 0 = left out, by the caller or here. Pure.
 */
void text_columns_fit(const struct text_column *columns, size_t n, size_t gap, size_t width,
                      size_t *widths);

/* Does the layout for text_table_format(), in hnlaunch-table.so. NULL: out of memory. */
typedef char *table_layout_fn(const struct text_table *t);
PUBLIC table_layout_fn table_layout;
