/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others ask the printer: which bytes of ranks are on their way, were lost, or stand on the
 * screen, and the newest words of a rank. "Missing" follows from the counts of a stream: those that
 * came, less those that were shown or filed.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "head/output/printer_private.h"
#include "head/term/columns.h"
#include "wire/msg.h"

/* NULL: the rank has no stream, or its file could not be opened. */
static const struct sink *find_rank_file(const struct printer *o, int stream, int rank)
{
        return o->streams[stream][rank] ? o->streams[stream][rank]->file : NULL;
}

size_t printer_pending(const struct printer *o)
{
        size_t n = sink_pending(o->out.sink) + (o->err.sink ? sink_pending(o->err.sink) : 0);

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += find_rank_file(o, s, r) ? sink_pending(find_rank_file(o, s, r)) : 0;
        return n;
}

bool printer_holds(const struct printer *o, int rank)
{
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                const struct printer_stream *st = o->streams[s][rank];

                /* While the records hold credit back, bytes written everywhere still wait for
                 * credit. */
                if (st && st->came > (o->held ? st->credited : MIN(st->shown, st->filed)))
                        return true;
        }
        return false;
}

/* Leaves sinks alone that have written everything: their reader is there. */
static void abandon_stuck(struct sink *s)
{
        if (s && sink_pending(s))
                sink_abandon(s);
}

void printer_abandon(struct printer *o, bool files)
{
        abandon_stuck(o->out.sink);
        abandon_stuck(o->err.sink);
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir && files; r++)
                        abandon_stuck(o->streams[s][r]->file);
        printer_release(o);
}

bool printer_is_filing(struct printer *o, unsigned calls)
{
        size_t waiting = 0;
        bool took = false;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++) {
                        struct sink *file = o->streams[s][r]->file;

                        /* Each file is asked, because the answer counts since the last call. */
                        took |= file && sink_took(file);
                        waiting += file ? sink_pending(file) : 0;
                }
        o->files_still = waiting && !took ? o->files_still + 1 : 0;
        return waiting && o->files_still < calls;
}

bool printer_is_terminal(const struct printer *o, uint8_t stream)
{
        return o->terminals[stream]->is_tty;
}

size_t printer_unwritten(const struct printer *o, struct intlist *ranks)
{
        size_t n = 0;

        for (int r = 0; r < o->n_ranks; r++) {
                size_t before = n;

                for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                        const struct printer_stream *st = o->streams[s][r];
                        int error = sink_error(o->terminals[s]->sink);
                        bool hung_up = error == EIO && o->terminals[s]->is_tty;

                        /* EPIPE: the reader of the pipe has ended, as in `| head`. */
                        if (st && error != EPIPE && !hung_up)
                                n += st->dropped + st->came - st->shown;
                }
                if (n > before)
                        intlist_add(ranks, r);
        }
        return n;
}

/* Bytes that are in no file: all, where the file could not be opened. */
static size_t count_missing(const struct printer_stream *st)
{
        return st->file ? sink_dropped(st->file) + sink_pending(st->file) : st->came;
}

size_t printer_lost(const struct printer *o)
{
        size_t n = 0;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks && o->opt.dir; r++)
                        n += count_missing(o->streams[s][r]);
        return n;
}

char *printer_last_words(const struct printer *o, int rank, uint8_t stream)
{
        const struct printer_stream *st = o->streams[stream][rank];
        size_t n = st ? buf_len(&st->newest.words) : 0;
        char *text = xcalloc(n + 1, 1);

        if (n)
                memcpy(text, buf_data(&st->newest.words), n);
        return text;
}

struct burst printer_last_burst(const struct printer *o, int rank, uint8_t stream)
{
        const struct printer_stream *st = o->streams[stream][rank];

        return st ? st->newest.burst : (struct burst){ 0 };
}

enum { OTHER_ROWS = 20 }; /* among and below the rows of a rank that still stand on the screen */

void printer_note_rows(struct terminal *t, const struct printer_stream *st, const void *text,
                       size_t n, bool mid_line)
{
        const unsigned char *p = text, *nl;
        /* The first row is a new one only if the cursor was at the beginning of a row; else the row
         * is noted already, of the stream that began the row. */
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
