/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/output/printer_private.h"
#include "head/term/columns.h"
#include "wire/msg.h"

enum { OTHER_ROWS = 20 }; /* among and below the rows of a rank that still stand on the screen */

void printer_note_rows(struct terminal *t, const struct printer_stream *st, const void *text,
                       size_t n, bool mid_line)
{
        const unsigned char *p = text, *nl;
        size_t rows = !mid_line;

        if (!t->is_tty || !n)
                return;
        n -= p[n - 1] == '\n';
        while (rows < SCREEN_ROWS && n && (nl = memrchr(p, '\n', n))) {
                n = (size_t)(nl - p);
                rows++;
        }
        memmove(t->rows + rows, t->rows, (SCREEN_ROWS - rows) * sizeof(*t->rows));
        for (size_t i = 0; i < rows; i++)
                t->rows[i] = st;
}

bool printer_shows(const struct printer *o, int rank, uint8_t stream, size_t lines)
{
        const struct printer_stream *st = o->streams[stream][rank];
        const struct terminal *t = o->terminals[stream];
        int fd = o->opt.fd[MSG_STDERR];
        size_t others;

        if (!st || !t->is_tty || t != o->terminals[MSG_STDERR] || !isatty(fd))
                return false;
        if (st->line.raw || st->dropped || st->shown < st->came)
                return false;
        others = MIN(columns_rows_of_terminal(fd) / 2, (size_t)OTHER_ROWS);
        for (size_t i = 0; i < SCREEN_ROWS && lines; i++) {
                if (t->rows[i] == st)
                        lines--;
                else if (!others--)
                        return false;
        }
        return !lines;
}
