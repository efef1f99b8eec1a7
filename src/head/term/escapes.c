/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state machine over single bytes, so that a sequence may come in pieces. Parameters of ESC [ are
 * kept in escapes.sequence until the final byte decides; every other sequence is dropped as it
 * comes. A newline ends every state, so a broken sequence never swallows the next line.
 *
 * Colours are kept in escapes.colour since they were last switched off. escapes_pause() switches
 * them off at the end of a line and sets @resume, with which the next visible text repeats them.
 */
#include "head/term/escapes.h"

#include <string.h>

enum {
        TEXT,
        ESCAPE,        /* behind ESC */
        CONTROL,       /* in ESC [ parameters */
        STRING,        /* in OSC, DCS, SOS, PM or APC */
        STRING_ESCAPE, /* there, behind ESC */
        C2,            /* behind the first byte of U+0080 ... U+00BF */
        CHARSET,       /* before the last byte of ESC ( and the like */
};

enum { ESC = 0x1b, BEL = 0x07 };

void escapes_pause(struct escapes *e, struct buf *out)
{
        if (e->colour_on && !e->resume)
                buf_append(out, "\033[0m", 4);
        e->resume = e->colour_on;
}

/* Appends visible text, behind the colour that a pause has switched off. */
static void put_visible(struct escapes *e, struct buf *out, const void *p, size_t n)
{
        if (e->resume)
                buf_append(out, e->colour, e->n_colour);
        e->resume = false;
        buf_append(out, p, n);
}

static void take_text_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c == ESC) {
                e->state = ESCAPE;
        } else if (c == 0xc2) {
                e->state = C2; /* U+0080 ... U+009F are the same commands in one character */
        } else if (c == '\r') {
                if (!alone) /* a line that is drawn again begins without a colour, too */
                        escapes_pause(e, out);
                buf_append(out, "\r", 1);
        } else if (c >= ' ' ? c != 0x7f : c == '\t' || (c == '\b' && alone)) {
                put_visible(e, out, &c, 1);
        }
}

/* Takes the byte behind ESC. */
static void take_after_escape(struct escapes *e, unsigned char c)
{
        if (c == '[') {
                e->state = CONTROL;
                e->n = 0;
        } else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
                e->state = STRING;
        } else if (c >= ' ' && c <= '/') {
                e->state = CHARSET;
        } else if (c != ESC) {
                e->state = TEXT;
        }
}

static void note_colour(struct escapes *e)
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

/* Passes ESC [ parameters final for colours; a lone rank may also erase and move the cursor. */
static void take_control_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        bool fits = e->n < sizeof(e->sequence);

        if (c < 0x40 || c > 0x7e) {
                if (c == ESC)
                        e->state = ESCAPE;
                else if (fits)
                        e->sequence[e->n++] = (char)c;
                return;
        }
        e->state = TEXT;
        e->sequence[fits ? e->n : sizeof(e->sequence) - 1] = '\0';
        if (!fits || strspn(e->sequence, "0123456789;:") < e->n)
                return;
        if (c != 'm' && !(alone && memchr("ABCDEFGHJKf", c, 11)))
                return;
        put_visible(e, out, "\033[", 2);
        buf_append(out, e->sequence, e->n);
        buf_append(out, &c, 1);
        if (c == 'm')
                note_colour(e);
}

static void take_after_c2(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        e->state = TEXT;
        if (c == 0x9b) {
                e->state = CONTROL;
                e->n = 0;
        } else if (c == 0x90 || c == 0x98 || (c >= 0x9d && c <= 0x9f)) {
                e->state = STRING;
        } else if (c >= 0xa0 && c < 0xc0) {
                put_visible(e, out, (const char[]){ (char)0xc2, (char)c }, 2);
        } else if (c < 0x80) {
                take_text_byte(e, out, c, alone);
        }
}

void escapes_filter(struct escapes *e, struct buf *out, const void *p, size_t n, bool alone)
{
        const unsigned char *c = p, *end = c + n;

        for (; c < end; c++) {
                if (*c == '\n') { /* ends every sequence; the next line begins without a colour */
                        e->state = TEXT;
                        escapes_pause(e, out);
                        buf_append(out, "\n", 1);
                        continue;
                }
                switch (e->state) {
                case TEXT:
                        take_text_byte(e, out, *c, alone);
                        break;
                case ESCAPE:
                        take_after_escape(e, *c);
                        break;
                case CONTROL:
                        take_control_byte(e, out, *c, alone);
                        break;
                case STRING: /* ends with BEL or ESC \ */
                        if (*c == BEL)
                                e->state = TEXT;
                        else if (*c == ESC)
                                e->state = STRING_ESCAPE;
                        break;
                case STRING_ESCAPE:
                        e->state = *c == '\\' ? TEXT : STRING;
                        break;
                case C2:
                        take_after_c2(e, out, *c, alone);
                        break;
                default: /* the last byte of a charset or the like */
                        e->state = TEXT;
                }
        }
}
