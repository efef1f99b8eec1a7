/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_columns_fit() chooses the columns of a table for a width. The column for the rest counts
 * with the least width until the others are chosen. Then columns are hidden from the highest rank
 * on, and columns with a least width are narrowed, until the row fits; space left over goes to the
 * column for the rest.
 */
#include <stdint.h>

#include "base/macros.h"
#include "head/output/text_table.h"

/* Returns the shown column that is left out first; @n = none may be. */
static size_t find_outermost(const struct text_column *columns, size_t n, const size_t *widths)
{
        size_t found = n;

        for (size_t i = 0; i < n; i++)
                if (widths[i] && columns[i].rank &&
                    (found == n || columns[i].rank > columns[found].rank))
                        found = i;
        return found;
}

/* Takes up to @over from the width of a column, which keeps @least. Returns how much was taken. */
static size_t narrow_column(size_t *width, size_t least, size_t over)
{
        size_t taken = MIN(*width - MIN(*width, least), over);

        *width -= taken;
        return taken;
}

void text_columns_fit(const struct text_column *columns, size_t n, size_t gap, size_t width,
                      size_t *widths)
{
        size_t used = 0, rest = n, whole = 0, out;

        for (size_t i = 0; i < n; i++) {
                if (widths[i] && columns[i].flags & TEXT_TRUNCATE) {
                        rest = i;
                        whole = widths[i];
                        widths[i] = MIN(widths[i], columns[i].least);
                }
                used += widths[i] ? widths[i] + gap : 0;
        }
        width += gap; /* none is behind the last column */
        /* Whole columns go before any cell is cut; columns of rank 0 stay. */
        while (used > width && (out = find_outermost(columns, n, widths)) < n) {
                used -= widths[out] + gap;
                widths[out] = 0;
        }
        for (size_t i = 0; i < n && used > width; i++)
                if (columns[i].least && i != rest)
                        used -= narrow_column(&widths[i], columns[i].least, used - width);
        if (rest == n || !widths[rest])
                return;
        if (used > width)
                narrow_column(&widths[rest], 1, used - width);
        else
                widths[rest] = MIN(whole, widths[rest] + width - used);
}
