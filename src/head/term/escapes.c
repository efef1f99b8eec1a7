/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/escapes.h"

#include <string.h>

enum { TEXT, ESCAPE, CONTROL, STRING, STRING_ESCAPE, C2, CHARSET };

enum { ESC = 0x1b, BEL = 0x07 };

static void put(struct buf *out, const char *p, size_t n)
{
        buf_append(out, p, n);
}

void escapes_pause(struct escapes *e, struct buf *out)
{
        if (e->colour_on && !e->resume)
                put(out, "\033[0m", 4);
        e->resume = e->colour_on;
}

/* A newline in a colour: the next line, which may be another rank's, begins without. */
static void newline(struct escapes *e, struct buf *out)
{
        escapes_pause(e, out);
        put(out, "\n", 1);
}

/* So does the next state of a line that is drawn again. */
static void carriage_return(struct escapes *e, struct buf *out, bool alone)
{
        if (!alone)
                escapes_pause(e, out);
        put(out, "\r", 1);
}

static void visible(struct escapes *e, struct buf *out, const char *p, size_t n)
{
        if (e->resume)
                put(out, e->colour, e->n_colour);
        e->resume = false;
        put(out, p, n);
}

static void text(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c == ESC)
                e->state = ESCAPE;
        else if (c == 0xc2)
                e->state = C2; /* before U+0080 ... U+009F: the same commands in one character */
        else if (c == '\n')
                newline(e, out);
        else if (c == '\r')
                carriage_return(e, out, alone);
        else if (c >= ' ' ? c != 0x7f : c == '\t' || (c == '\b' && alone))
                visible(e, out, (const char *)&c, 1);
}

static void begin(struct escapes *e, unsigned char state)
{
        e->state = state;
        e->n = 0;
}

/* In the middle of a sequence, which was none then: a line must not be swallowed. */
static void line_ends(struct escapes *e, struct buf *out)
{
        e->state = TEXT;
        newline(e, out);
}

/* What follows ESC. */
static void escape(struct escapes *e, struct buf *out, unsigned char c)
{
        if (c == '\n')
                line_ends(e, out);
        else if (c == '[')
                begin(e, CONTROL);
        else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
                e->state = STRING;
        else if (c >= ' ' && c <= '/')
                e->state = CHARSET;
        else if (c != ESC)
                e->state = TEXT;
}

static void colour(struct escapes *e)
{
        bool off = e->n == 0 || (e->n == 1 && e->sequence[0] == '0');
        size_t n = (size_t)e->n + 3;

        e->colour_on = !off;
        if (off || e->n_colour + n > sizeof(e->colour))
                e->n_colour = 0;
        if (off || n > sizeof(e->colour))
                return;
        memcpy(e->colour + e->n_colour, "\033[", 2);
        memcpy(e->colour + e->n_colour + 2, e->sequence, e->n);
        e->colour[e->n_colour + n - 1] = 'm';
        e->n_colour = (unsigned char)(e->n_colour + n);
}

/* ESC [ parameters final: colours; erasing and moving within reason for who is alone. */
static void control_ends(struct escapes *e, struct buf *out, unsigned char final, bool alone)
{
        bool plain = e->n < sizeof(e->sequence) && strspn(e->sequence, "0123456789;:") >= e->n;

        e->state = TEXT;
        if (!plain || (final != 'm' && !(alone && memchr("ABCDEFGHJKf", final, 11))))
                return;
        if (e->resume)
                put(out, e->colour, e->n_colour);
        e->resume = false;
        if (final == 'm')
                colour(e);
        put(out, "\033[", 2);
        put(out, e->sequence, e->n);
        put(out, (const char *)&final, 1);
}

static void control(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c >= 0x40 && c <= 0x7e) {
                e->sequence[e->n < sizeof(e->sequence) ? e->n : sizeof(e->sequence) - 1] = '\0';
                control_ends(e, out, c, alone);
        } else if (c == '\n') {
                line_ends(e, out);
        } else if (c == ESC) {
                e->state = ESCAPE;
        } else if (e->n < sizeof(e->sequence)) {
                e->sequence[e->n++] = (char)c;
        }
}

/* The end of OSC and its like is BEL or ESC \; a newline ends what was never meant as one. */
static void string(struct escapes *e, struct buf *out, unsigned char c)
{
        if (c == '\n')
                newline(e, out);
        if (c == BEL || c == '\n')
                e->state = TEXT;
        else if (c == ESC)
                e->state = STRING_ESCAPE;
}

static void after_c2(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        e->state = TEXT;
        if (c == 0x9b) {
                begin(e, CONTROL);
        } else if (c == 0x90 || c == 0x98 || (c >= 0x9d && c <= 0x9f)) {
                e->state = STRING;
        } else if (c >= 0xa0 && c < 0xc0) {
                visible(e, out, (const char[]){ (char)0xc2, (char)c }, 2);
        } else if (c < 0x80) {
                text(e, out, c, alone);
        }
}

void escapes_filter(struct escapes *e, struct buf *out, const void *p, size_t n, bool alone)
{
        const unsigned char *c = p, *end = c + n;

        for (; c < end; c++) {
                switch (e->state) {
                case TEXT:
                        text(e, out, *c, alone);
                        break;
                case ESCAPE:
                        escape(e, out, *c);
                        break;
                case CONTROL:
                        control(e, out, *c, alone);
                        break;
                case STRING:
                        string(e, out, *c);
                        break;
                case STRING_ESCAPE:
                        e->state = *c == '\\' ? TEXT : STRING;
                        if (*c == '\n')
                                line_ends(e, out);
                        break;
                case C2:
                        after_c2(e, out, *c, alone);
                        break;
                default: /* the last byte of a charset or the like */
                        e->state = TEXT;
                        if (*c == '\n')
                                line_ends(e, out);
                }
        }
}
