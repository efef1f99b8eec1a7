/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/redraw.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

size_t redraw_body(const unsigned char *p, size_t n)
{
        while (n && p[n - 1] == '\r')
                n--;
        return n;
}

ssize_t redraw_last(const unsigned char *p, size_t n)
{
        size_t body = redraw_body(p, n);
        const unsigned char *cr = body ? memrchr(p, '\r', body) : NULL;

        return cr ? cr - p : -1;
}

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

        if (end - p < 3 || p[0] != '\033' || p[1] != '[')
                return p;
        while (q < end && *q >= 0x20 && *q < 0x40)
                q++;
        return q < end ? q + 1 : p;
}

/* Makes blanks of the last newlines, at most @most. Returns how many. */
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

/* Joins rows between movements of the cursor, in place. */
static void join_rows(struct redraw_rows *r, unsigned char *p, unsigned char *end)
{
        unsigned char *begin = p;

        for (unsigned char *q = p; q < end;) {
                unsigned char *next = p + (skip_sequence(q, end) - p);

                if (next > q && next[-1] == 'A') {
                        r->n = MAX(strtoul((const char *)q + 2, NULL, 10), 1UL);
                        join_last(begin, q, r->n);
                        begin = next;
                        r->moves = r->behind = true;
                } else if (next == q && r->behind && *q == '\n') {
                        *q = ' ';
                } else if (next == q && *q != '\r') {
                        r->behind = false;
                }
                q = next > q ? next : q + 1;
        }
        if (begin == end)
                return;
        if (ends_with_newline(begin, end))
                r->n = 0;
        else
                r->n -= join_last(begin, end, r->n);
}

/* Returns the last newline if nothing, or one state, is behind it; else the end. */
static const unsigned char *find_open_newline(const unsigned char *p, const unsigned char *end)
{
        const unsigned char *nl = memrchr(p, '\n', (size_t)(end - p));
        bool open = nl && (nl + 1 == end ||
                           (nl[1] == '\r' && !memchr(nl + 2, '\r', (size_t)(end - nl - 2))));

        return open ? nl : end;
}

void redraw_join_rows(struct redraw_rows *r, struct buf *to, const void *p, size_t n)
{
        CLEANUP(buf_finish) struct buf all = r->held;
        const unsigned char *end, *kept;
        unsigned char *joined;

        r->held = (struct buf)BUF_INIT;
        buf_append(&all, p, n);
        joined = buf_reserve(to, buf_len(&all));
        if (!joined)
                return;
        memcpy(joined, buf_data(&all), buf_len(&all));
        end = joined + buf_len(&all);
        join_rows(r, joined, joined + buf_len(&all));
        kept = n && r->moves ? find_open_newline(joined, end) : end;
        buf_advance(to, (size_t)(kept - joined));
        buf_append(&r->held, kept, (size_t)(end - kept));
}

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
