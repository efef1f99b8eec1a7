/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_table_format() makes all cells printable, chooses columns and widths (text_columns.c), cuts
 * cells, and then has the rows laid out by table_layout() of the module, or plainly by
 * append_plain_row().
 */
#include "head/output/text_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/error_number.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/nodes/install_paths.h"
#include "head/output/say.h"
#include "head/term/columns.h"

char **text_table_add(struct text_table *t)
{
        t->rows = xgrow(t->rows, t->n_rows, &t->cap, sizeof(*t->rows));
        t->rows[t->n_rows] = xcalloc(t->n_columns, sizeof(**t->rows));
        return t->rows[t->n_rows++];
}

void text_table_finish(struct text_table *t)
{
        for (size_t i = 0; i < t->n_rows; i++) {
                for (size_t c = 0; c < t->n_columns; c++)
                        free(t->rows[i][c]);
                free(t->rows[i]);
        }
        free(t->rows);
}

/* HN835, once in a process. The table is still complete. */
static void warn_of_no_layout(const struct error *err)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        diag_help(diag_warn(&d, HN_TABLE_PLAIN, "columns of tables are not aligned: %s", err->text),
                  "install hnlaunch again, with libsmartcols");
        say_diags(&d, false);
}

/* Returns the function of the module, NULL = it cannot be loaded. */
static table_layout_fn *find_layout(void)
{
        static table_layout_fn *layout;
        static bool tried;
        struct error err = { 0 };

        if (!tried)
                *(void **)&layout = install_path_load("hnlaunch-table.so", "the layout of tables",
                                                      "table_layout", &err);
        if (!tried && !layout)
                warn_of_no_layout(&err);
        tried = true;
        return layout;
}

/* Appends the cells of a row; NULL = the names of the columns. */
static void append_plain_row(struct buf *b, const struct text_table *t, char *const *cells)
{
        const char *gap = "";

        for (size_t i = 0; i < t->n_columns; i++) {
                if (t->hidden[i])
                        continue;
                buf_appends(b, gap);
                buf_appends(b, !cells ? t->columns[i].name : cells[i]);
                gap = "  ";
        }
        buf_appends(b, "\n");
}

/* Makes the cells of a column printable. Returns the width of the widest. */
static size_t escape_cells(struct text_table *t, size_t column)
{
        size_t width = strlen(t->columns[column].name);

        for (size_t i = 0; i < t->n_rows; i++) {
                char **cell = &t->rows[i][column];
                char *text = printable_text(*cell ? *cell : "", SIZE_MAX);

                free(*cell);
                *cell = text;
                width = MAX(width, columns_count(text, strlen(text)));
        }
        return width;
}

/* A name loses its middle, because hosts differ at both ends; a text loses its end. */
static void cut_cells(struct text_table *t, size_t column, size_t width)
{
        for (size_t i = 0; i < t->n_rows; i++) {
                struct buf b = BUF_INIT;

                if (t->columns[column].flags & TEXT_NAME)
                        columns_shorten(&b, t->rows[i][column], width);
                else
                        columns_cut(&b, t->rows[i][column], width);
                free(t->rows[i][column]);
                t->rows[i][column] = buf_steal(&b);
        }
}

/* Cells of columns that the caller has hidden are not escaped, as no layout shows them. */
static void fit_columns(struct text_table *t)
{
        size_t widths[TEXT_COLUMNS_MAX] = { 0 }, whole[TEXT_COLUMNS_MAX];

        for (size_t i = 0; i < t->n_columns; i++)
                if (!t->hidden[i])
                        widths[i] = escape_cells(t, i);
        memcpy(whole, widths, sizeof(whole));
        if (t->width)
                text_columns_fit(t->columns, t->n_columns, TEXT_GAP, t->width, widths);
        for (size_t i = 0; i < t->n_columns; i++) {
                t->hidden[i] = !widths[i];
                if (widths[i] < whole[i] && widths[i])
                        cut_cells(t, i, widths[i]);
        }
}

char *text_table_format(struct text_table *t)
{
        table_layout_fn *layout = t->n_rows ? find_layout() : NULL;
        struct buf b = BUF_INIT;
        char *text;

        if (!t->n_rows)
                return xstrdup("");
        fit_columns(t);
        text = layout ? layout(t) : NULL;
        if (text)
                return text;
        append_plain_row(&b, t, NULL);
        for (size_t i = 0; i < t->n_rows; i++)
                append_plain_row(&b, t, t->rows[i]);
        return buf_steal(&b);
}
