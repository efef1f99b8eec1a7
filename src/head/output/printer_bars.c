/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bars: the rows above the live line, with the newest state of each line that a rank draws again
 * and again. Such a state stays in printer_stream.waiting until its line ends, and the line then in
 * printer_stream.end until the bars of all ranks have ended, more lines of the rank come, or the
 * output ends. How far a bar is, its first number with a percent sign says.
 *
 * Echo: what the terminal itself shows of the keys of its user.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/output/printer_private.h"
#include "head/term/columns.h"
#include "head/term/redraw.h"
#include "wire/msg.h"

/* A bar as found in the bytes of a stream; pointers are into these bytes, so a bar lasts up to the
 * next change of the stream. */
struct drawn_bar {
        const struct printer_stream *st;
        const struct escapes *escapes; /* before @begin */
        const unsigned char *begin, *state;
        size_t len;
        int percent; /* -1 = unknown */
};

bool printer_draws_states(const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);

        return body && !memchr(p, '\n', n) && (body < n || redraw_last(p, n) >= 0);
}

size_t printer_skip_states(struct printer_stream *st)
{
        CLEANUP(buf_finish) struct buf unseen = BUF_INIT;
        const unsigned char *p = buf_data(&st->waiting);
        size_t len = buf_len(&st->waiting), n;

        if (!st->line.redraws || !len || memchr(p, '\n', len))
                return 0;
        /* The rank was stopped, so the last state of its bar tells nothing: no line remains. */
        if (st->ended && st->o->bars.dropped && st->line.in_block && printer_draws_states(p, len)) {
                buf_finish(&st->waiting);
                return len;
        }
        n = redraw_replaced(p, len);
        /* Colours set by skipped states go on in the next one. */
        escapes_filter(st->escapes, &unseen, p, n, false);
        buf_consume(&st->waiting, n);
        return n;
}

void printer_drop_bars(struct printer *o)
{
        o->bars.dropped = true;
        printer_release_bar_ends(o, NULL);
}

const void *printer_join_rows(struct printer_stream *st, const void *data, size_t *len,
                              struct buf *joined)
{
        struct redraw_rows *r = &st->line.rows;

        if (!st->line.redraws || (!r->moves && (!*len || !memchr(data, '\033', *len))))
                return data;
        redraw_join_rows(r, joined, data, *len);
        *len = buf_len(joined);
        return buf_data(joined);
}

/* Returns the number before the first percent sign, -1 = none. Only the nearest seven characters
 * are looked at, enough for "100.000". */
static int read_percent(const unsigned char *p, size_t n)
{
        const unsigned char *sign = memchr(p, '%', n), *at = sign;
        char digits[16];

        if (!sign)
                return -1;
        while (at > p && sign - at < 8 && strchr("0123456789.", at[-1]) && at[-1])
                at--;
        memcpy(digits, at, (size_t)(sign - at));
        digits[sign - at] = '\0';
        return *digits ? (int)strtod(digits, NULL) : -1;
}

/* Reads the bar in the waiting bytes or in the kept last line of a stream; @escapes: the state of
 * the filter before these bytes. False: the bytes draw no bar, or a blank one. */
static bool read_bar(const struct printer_stream *st, const struct escapes *escapes,
                     const struct buf *from, struct drawn_bar *ret)
{
        const unsigned char *p = buf_data(from);
        size_t n = buf_len(from), at;

        /* A kept line has its newline, with which no bytes count as states. */
        n -= n && p[n - 1] == '\n' && st->end && from == &st->end->line;
        if (!n || !st->line.in_block || !printer_draws_states(p, n))
                return false;
        at = (size_t)(redraw_last(p, n) + 1);
        *ret = (struct drawn_bar){ .st = st,
                                   .escapes = escapes,
                                   .begin = p,
                                   .state = p + at,
                                   .len = redraw_body(p, n) - at };
        ret->percent = read_percent(ret->state, ret->len);
        return !redraw_is_blank(ret->state, ret->len);
}

/* Finds the bar that the stream draws, else the end of its last. False: there is none. */
static bool find_bar(const struct printer_stream *st, struct drawn_bar *ret)
{
        return st && (read_bar(st, st->escapes, &st->waiting, ret) ||
                      (st->end && read_bar(st, &st->end->escapes, &st->end->line, ret)));
}

void printer_count_bar(struct printer_stream *st)
{
        struct drawn_bar bar;
        bool drawn = !st->ended && !st->end && read_bar(st, st->escapes, &st->waiting, &bar);

        if (drawn == st->counted.bar)
                return;
        st->counted.bar = drawn;
        st->o->bars.drawn += drawn ? 1 : -(size_t)1;
}

void printer_keep_bar_end(struct printer_stream *st)
{
        CLEANUP(buf_finish) struct buf unseen = BUF_INIT;
        const unsigned char *p = buf_data(&st->waiting);
        size_t n = st->counted.bar ? buf_len(&st->waiting) : 0;
        const unsigned char *nl = n ? memchr(p, '\n', n) : NULL;
        size_t len = nl ? (size_t)(nl + 1 - p) : st->ended ? n : 0;

        /* The first line, complete or ended by the stream, is kept unless part of the line is out
         * already. */
        if (!len || st->line.mid_line || st->o->flushing || st->o->bars.dropped)
                return;
        /* Text behind the line would have to wait as well; and the only bar has no other bars to
         * wait for. */
        if ((len < n && !printer_draws_states(p + len, n - len)) ||
            (st->o->bars.drawn == 1 && !st->o->bars.ended))
                return;
        st->end = xcalloc(1, sizeof(*st->end));
        st->end->escapes = *st->escapes;
        buf_append(&st->end->line, p, len);
        /* Later bytes are filtered as if the line had been shown. */
        escapes_filter(st->escapes, &unseen, p, len, false);
        buf_consume(&st->waiting, len);
        st->o->bars.ended++;
}

void printer_release_bar_ends(struct printer *o, struct printer_stream *last)
{
        for (int r = 0; r < o->n_ranks && o->bars.ended; r++)
                for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                        struct printer_stream *st = o->streams[s][r];

                        if (!st || (!st->end && st != last))
                                continue;
                        if (st->end)
                                st->end->due = true;
                        printer_queue(st);
                }
}

/* The furthest behind first; those of unknown progress last, by rank. */
static int compare_bars(const void *a, const void *b)
{
        const struct drawn_bar *x = a, *y = b;
        unsigned px = (unsigned)x->percent, py = (unsigned)y->percent; /* -1 is the largest */

        return px != py ? (px > py) - (px < py) : x->st->rank - y->st->rank;
}

/* Orders bars by rank: a block with room for all of them keeps each row in place. */
static int compare_bar_ranks(const void *a, const void *b)
{
        const struct drawn_bar *x = a, *y = b;

        return x->st->rank != y->st->rank ? x->st->rank - y->st->rank
                                          : x->st->number - y->st->number;
}

/* The escape sequences of the state are filtered as they would be in its line; it has the colour
 * with which the state before ended. */
static void add_bar_row(const struct drawn_bar *bar, size_t columns, struct buf *to)
{
        CLEANUP(buf_finish) struct buf row = BUF_INIT, unseen = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;
        struct escapes e = *bar->escapes;
        size_t n;

        escapes_filter(&e, &unseen, bar->begin, (size_t)(bar->state - bar->begin), false);
        escapes_pause(&e, &unseen);
        buf_append(&row, bar->st->line.prefix, bar->st->line.prefix_len);
        escapes_filter(&e, &row, bar->state, bar->len, false);
        escapes_pause(&e, &row);
        text = buf_steal(&row);
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' && *c != '\033')
                        *c = ' '; /* a tab has no width of its own */
        n = columns_fitting(text, strlen(text), columns);
        buf_append(to, text, n);
        buf_appends(to, text[n] && memchr(text, '\033', n) ? "\033[0m\n" : "\n");
}

/* "... 505 more bars, 36-41 %". A bar of unknown progress among the rest, sorted last, leaves the
 * numbers out. */
static void add_rest_row(const struct drawn_bar *v, size_t n, size_t columns, struct buf *to)
{
        char text[96];
        int len = snprintf(text, sizeof(text), "... %zu more bars", n);

        if (v[0].percent >= 0 && v[n - 1].percent > v[0].percent)
                snprintf(text + len, sizeof(text) - (size_t)len, ", %d-%d %%", v[0].percent,
                         v[n - 1].percent);
        else if (v[0].percent >= 0 && v[n - 1].percent >= 0)
                snprintf(text + len, sizeof(text) - (size_t)len, ", %d %%", v[0].percent);
        buf_append(to, text, columns_fitting(text, strlen(text), columns));
        buf_appends(to, "\n");
}

/* Appends a row, with its newline, for each line that a rank draws in the block of
 * printer_draw_live(), @most rows in all, of which @own are not for bars. If the bars are too many,
 * those that are the furthest behind, one that is the furthest ahead, and one for all others; @most
 * bars leave out the one own row. Returns the number of rows. */
static size_t add_bar_rows(const struct printer *o, size_t columns, size_t most, size_t own,
                           struct buf *to)
{
        struct drawn_bar *v = NULL, bar;
        size_t n = 0, behind;

        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++)
                for (int r = 0; r < o->n_ranks; r++) {
                        if (!find_bar(o->streams[s][r], &bar))
                                continue;
                        v = xrealloc(v, n + 1, sizeof(*v));
                        v[n++] = bar;
                }
        if (!n)
                return 0;
        most -= own == 1 && n == most ? 0 : own;
        qsort(v, n, sizeof(*v), n <= most ? compare_bar_ranks : compare_bars);
        /* Two rows are for the rest and for the bar that is ahead of all. */
        behind = n <= most ? n : most - 2;
        for (size_t i = 0; i < behind; i++)
                add_bar_row(&v[i], columns, to);
        if (n > most) {
                add_rest_row(v + behind, n - behind - 1, columns, to);
                add_bar_row(&v[n - 1], columns, to);
        }
        free(v);
        return MIN(n, most);
}

/* Ends a line to which the states of a bar belong that stands in the block. */
static void leave_line_of_bar(struct terminal *t)
{
        struct printer_stream *st = t->owner;

        if (!st || !st->line.in_block ||
            !printer_draws_states(buf_data(&st->waiting), buf_len(&st->waiting)))
                return;
        st->line.drawn = true;
        printer_break_line(t);
}

/* Notes which lines printer_draw_live() has drawn. */
static void note_live_lines(struct terminal *t, const struct buf *block)
{
        const char *p = (const char *)buf_data(block), *end = p + buf_len(block), *nl;
        size_t n = 0;

        for (; p < end && n < PRINTER_ROWS; p = nl + (nl < end)) {
                nl = memchr(p, '\n', (size_t)(end - p));
                nl = nl ? nl : end;
                /* An empty row has a row, too, and 0 would end the list. */
                t->live[n++] = MAX(columns_count(p, (size_t)(nl - p)), (size_t)1);
        }
        t->live[n] = 0;
}

void printer_draw_live(struct printer *o, const char *text, const char *bar)
{
        struct terminal *t = o->terminals[MSG_STDERR];
        /* The last column stays free: behind a full row the cursor may be on the next one. */
        size_t columns = MAX(columns_of_terminal(o->opt.fd[MSG_STDERR]), (size_t)1) - 1, rows, most;
        CLEANUP(buf_finish) struct buf block = BUF_INIT;
        const char *last = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
        CLEANUP(free_textp) char *line = NULL;
        bool full;

        if (!t->is_tty || !o->opt.erase || o->flushing || t->first || sink_pending(t->sink))
                return;
        leave_line_of_bar(t);
        /* The block itself ends within a line, and may be drawn again; other unfinished lines
         * stay. */
        if (t->owner || (!*t->live && sink_is_mid_line(t->sink)))
                return;
        printer_erase_live(t);
        /* At least half of the screen is left to output. */
        most = MIN(columns_rows_of_terminal(o->opt.fd[MSG_STDERR]) / 2, (size_t)PRINTER_ROWS);
        rows = most > 3 ? add_bar_rows(o, columns, most, 1 + (last > text), &block) : 0;
        full = rows && rows == most; /* without the line */
        line = xasprintf("%s%s", full ? "" : last, bar && !rows ? bar : "");
        if (full)
                buf_truncate(&block, buf_len(&block) - 1);
        if (last > text) {
                buf_append(&block, text, columns_fitting(text, (size_t)(last - text) - 1, columns));
                buf_append(&block, "\n", 1);
        }
        buf_append(&block, line, columns_fitting(line, strlen(line), columns));
        sink_put(t->sink, buf_data(&block), buf_len(&block), NULL, 0);
        note_live_lines(t, &block);
}

size_t printer_live_rows(const struct terminal *t)
{
        size_t columns = columns_of_terminal(t->o->opt.fd[MSG_STDERR]), rows = 0;

        for (const size_t *width = t->live; *width; width++)
                rows += (*width + columns - 1) / columns;
        return rows;
}

void printer_end_entered_line(struct printer *o, int fd)
{
        for (int s = MSG_STDOUT; s <= MSG_STDERR; s++) {
                struct terminal *t = o->terminals[s];

                if (!t->is_tty || !printer_same_file(fd, o->opt.fd[s]))
                        continue;
                if (t->owner)
                        t->owner->line.mid_line = t->owner->line.drawn = false;
                t->owner = NULL;
                if (*t->live)
                        /* One row more: the echo of the user's newline has moved the cursor below
                         * the block. */
                        sink_erase_lines(t->sink, printer_live_rows(t) + 1);
                *t->live = 0;
                sink_end_line(t->sink);
        }
}

bool printer_shows_live(const struct printer *o)
{
        return o->terminals[MSG_STDERR]->live[0] > 0;
}

/* A block that is drawn needs no care here: erasing the block takes the echo away, too. */
void printer_erase_echo(struct printer *o)
{
        struct terminal *t = o->terminals[MSG_STDERR];

        if (t->is_tty && o->opt.erase && !*t->live && !sink_is_mid_line(t->sink))
                sink_erase_lines(t->sink, 1);
}
