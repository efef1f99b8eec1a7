/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text table: rows of cells -> lines whose columns stand below each other
 *
 * The layout is done by hnlaunch-table.so, which is loaded for the first table: a launch that
 * prints none does not pay for libsmartcols. Without the module rows have a tab between cells, and
 * a warning tells of it once (HN835). Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

enum {
        TEXT_COLUMNS_MAX = 12,
        TEXT_RIGHT = 1,    /* numbers */
        TEXT_TRUNCATE = 2, /* cut so that a line fits the terminal; else the last columns are */
};

struct text_column {
        const char *name;
        unsigned flags; /* TEXT_* */
};

struct text_table {
        const struct text_column *columns;
        size_t n_columns;
        bool hidden[TEXT_COLUMNS_MAX];
        char ***rows; /* each has @n_columns cells; NULL = empty */
        size_t n_rows, cap;
};

/* Adds a row. Returns its cells, to be set to malloc'ed texts. */
char **text_table_add(struct text_table *t);
/* Returns a line of names and one for each row, each with a newline, malloc'ed; "" without rows. */
char *text_table_format(const struct text_table *t);
void text_table_finish(struct text_table *t); /* fits CLEANUP() */

/* Does the layout for text_table_format(), in hnlaunch-table.so. NULL: out of memory. */
typedef char *table_layout_fn(const struct text_table *t);
PUBLIC table_layout_fn table_layout;
