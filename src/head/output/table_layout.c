/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch-table.so: the layout of text_table, by libsmartcols. The cells are printable and fit the
 * terminal.
 */
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "head/output/text_table.h"

/* Returns the table with columns and without rows. NULL: out of memory. */
static struct libscols_table *create_columns(const struct text_table *t)
{
        struct libscols_table *s = scols_new_table();

        for (size_t i = 0; s && i < t->n_columns; i++) {
                struct libscols_column *c = scols_table_new_column(
                        s, t->columns[i].name, 0,
                        (t->columns[i].flags & TEXT_RIGHT ? SCOLS_FL_RIGHT : 0) |
                                (t->hidden[i] ? SCOLS_FL_HIDDEN : 0));

                /* Cells have escapes of unprintable bytes, as "\x1b"; the library would escape
                 * their backslash once more. */
                if (c)
                        scols_column_set_safechars(c, "\\"); /* of an escape */
        }
        if (s) {
                /* The width is the caller's: cells fit already, and the library must not ask the
                 * terminal. */
                scols_table_set_termforce(s, SCOLS_TERMFORCE_NEVER);
                scols_table_set_column_separator(s, "  ");
        }
        return s;
}

/* Ends @text with a newline, which not every release of the library writes. */
static char *end_with_newline(char *text)
{
        size_t len = strlen(text);
        char *longer = len && text[len - 1] == '\n' ? text : realloc(text, len + 2);

        if (!longer)
                free(text);
        else if (longer[len ? len - 1 : 0] != '\n')
                memcpy(longer + len, "\n", 2);
        return longer;
}

char *table_layout(const struct text_table *t)
{
        struct libscols_table *s = create_columns(t);
        char *text = NULL;

        for (size_t i = 0; s && i < t->n_rows; i++) {
                struct libscols_line *line = scols_table_new_line(s, NULL);

                for (size_t c = 0; line && c < t->n_columns; c++)
                        scols_line_set_data(line, c, t->rows[i][c]);
        }
        if (s && scols_print_table_to_string(s, &text) != 0)
                text = NULL;
        scols_unref_table(s);
        return text ? end_with_newline(text) : NULL;
}
