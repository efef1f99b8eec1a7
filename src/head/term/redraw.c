/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state of a bar is the text between two carriage returns. Functions over one line find states
 * from behind with memrchr(): a line may have grown for minutes, and only its last states count.
 *
 * redraw_join_rows() handles bars of several rows, such as those of rich and of tqdm with several
 * positions: after each round the cursor is moved up by n rows, and the rows are written again. The
 * newlines over which the cursor goes become blanks, so a round is one line for the rest of the
 * output. As the movement comes behind the newline, the last newline is held back
 * (redraw_rows.held) until the next bytes have shown whether a movement follows.
 */
#include "head/term/redraw.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Carriage returns at the end decide nothing yet: with a newline next, these end the line. */
size_t redraw_body(const unsigned char *p, size_t n)
{
        /* A terminal may get CR CR LF: a rank writes CR LF, and a pty adds another CR. */
        while (n && p[n - 1] == '\r')
                n--;
        return n;
}

ssize_t redraw_last(const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);
        /* The last byte of the body is none, so text follows the one that is found. */
        const unsigned char *cr = body ? memrchr(p, '\r', body) : NULL;

        return cr ? cr - p : -1;
}

/* The last whole state is kept, as the text behind it may be only the beginning of the next one. */
size_t redraw_replaced(const unsigned char *p, size_t n)
{
        ssize_t last = redraw_last(p, n);
        ssize_t before = last > 0 ? redraw_last(p, (size_t)last) : -1;

        return before > 0 ? (size_t)before : 0;
}

/* Returns the end of a control sequence at @p (ECMA-48: ESC [, parameters, a letter), else @p. */
static const unsigned char *skip_sequence(const unsigned char *p, const unsigned char *end)
{
        const unsigned char *q = p + 2;

        /* A sequence that is cut by the end of the bytes counts as text. */
        if (end - p < 3 || p[0] != '\033' || p[1] != '[')
                return p;
        while (q < end && *q >= 0x20 && *q < 0x40)
                q++;
        return q < end ? q + 1 : p;
}

/* Makes blanks of the last newlines, at most @most. Returns how many. A blank keeps the rows apart
 * in the joined line. */
static size_t join_last(unsigned char *p, const unsigned char *end, size_t most)
{
        unsigned char *nl;
        size_t n = 0;

        for (; n < most && (nl = memrchr(p, '\n', (size_t)(end - p))); n++)
                *nl = ' ';
        return n;
}

/* Whether the last character, but for control sequences, is a newline. */
static bool ends_with_newline(const unsigned char *p, const unsigned char *end)
{
        bool newline = false;

        while (p < end) {
                const unsigned char *next = skip_sequence(p, end);

                if (next == p)
                        newline = *next++ == '\n';
                p = next;
        }
        return newline;
}

/* Joins rows between movements of the cursor, in place. @begin follows the last movement: only rows
 * drawn since then may be joined. On return r->n is the number of newlines that the next bytes may
 * still have in front of a movement. */
static void join_rows(struct redraw_rows *r, unsigned char *p, unsigned char *end)
{
        unsigned char *begin = p;

        for (unsigned char *q = p; q < end;) {
                unsigned char *next = p + (skip_sequence(q, end) - p);

                /* ESC [ n A moves up by n rows; without a number, or with 0, by one. */
                if (next > q && next[-1] == 'A') {
                        r->n = MAX(strtoul((const char *)q + 2, NULL, 10), 1UL);
                        join_last(begin, q, r->n);
                        begin = next;
                        r->moves = r->behind = true;
                } else if (next == q && r->behind && *q == '\n') {
                        /* Newlines directly behind a movement move down over rows
                         * that stay as they are. */
                        *q = ' ';
                } else if (next == q && *q != '\r') {
                        r->behind = false;
                }
                q = next > q ? next : q + 1;
        }
        /* The bytes end with a movement: its count stays for the next bytes. */
        if (begin == end)
                return;
        /* Behind a newline nothing is predicted of the next bytes: find_open_newline() holds the
         * newline back in place of that. */
        if (ends_with_newline(begin, end))
                r->n = 0;
        else
                r->n -= join_last(begin, end, r->n);
}

/* Returns the last newline if nothing, or one state, is behind it; else the end. */
static const unsigned char *find_open_newline(const unsigned char *p, const unsigned char *end)
{
        const unsigned char *nl = memrchr(p, '\n', (size_t)(end - p));
        /* A bar below another one begins with CR. With a second CR the row is drawn again in its
         * place, and the newline above it waits no longer. */
        bool open = nl && (nl + 1 == end ||
                           (nl[1] == '\r' && !memchr(nl + 2, '\r', (size_t)(end - nl - 2))));

        return open ? nl : end;
}

void redraw_join_rows(struct redraw_rows *r, struct buf *to, const void *p, size_t n)
{
        CLEANUP(buf_finish) struct buf all = r->held;
        const unsigned char *end, *kept;
        unsigned char *joined;

        /* The held bytes are joined with the new ones, and may be held again. */
        r->held = (struct buf)BUF_INIT;
        buf_append(&all, p, n);
        joined = buf_reserve(to, buf_len(&all));
        if (!joined)
                return;
        memcpy(joined, buf_data(&all), buf_len(&all));
        end = joined + buf_len(&all);
        join_rows(r, joined, joined + buf_len(&all));
        /* A stream that has never moved the cursor is not delayed, and none is at its end. */
        kept = n && r->moves ? find_open_newline(joined, end) : end;
        buf_advance(to, (size_t)(kept - joined));
        buf_append(&r->held, kept, (size_t)(end - kept));
}

/* Drops what is held: redraw_join_rows() with 0 bytes gives the held bytes out before. */
void redraw_rows_finish(struct redraw_rows *r)
{
        buf_finish(&r->held);
}

bool redraw_is_blank(const unsigned char *p, size_t n)
{
        while (n && p[n - 1] == ' ')
                n--;
        return n == 0;
}
