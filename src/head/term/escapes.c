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

static void put_bytes(struct buf *out, const char *p, size_t n)
{
        buf_append(out, p, n);
}

void escapes_pause(struct escapes *e, struct buf *out)
{
        if (e->colour_on && !e->resume)
                put_bytes(out, "\033[0m", 4);
        e->resume = e->colour_on;
}

/* The next line, maybe of another rank, begins without a colour. */
static void put_newline(struct escapes *e, struct buf *out)
{
        escapes_pause(e, out);
        put_bytes(out, "\n", 1);
}

/* A line that is drawn again begins without a colour, too. */
static void put_carriage_return(struct escapes *e, struct buf *out, bool alone)
{
        if (!alone)
                escapes_pause(e, out);
        put_bytes(out, "\r", 1);
}

static void put_visible(struct escapes *e, struct buf *out, const char *p, size_t n)
{
        if (e->resume)
                put_bytes(out, e->colour, e->n_colour);
        e->resume = false;
        put_bytes(out, p, n);
}

static void take_text_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c == ESC)
                e->state = ESCAPE;
        else if (c == 0xc2)
                e->state = C2; /* U+0080 ... U+009F are the same commands in one character */
        else if (c == '\n')
                put_newline(e, out);
        else if (c == '\r')
                put_carriage_return(e, out, alone);
        else if (c >= ' ' ? c != 0x7f : c == '\t' || (c == '\b' && alone))
                put_visible(e, out, (const char *)&c, 1);
}

static void begin_sequence(struct escapes *e, unsigned char state)
{
        e->state = state;
        e->n = 0;
}

/* A newline within a sequence ends it. */
static void break_sequence(struct escapes *e, struct buf *out)
{
        e->state = TEXT;
        put_newline(e, out);
}

/* Takes the byte behind ESC. */
static void take_after_escape(struct escapes *e, struct buf *out, unsigned char c)
{
        if (c == '\n')
                break_sequence(e, out);
        else if (c == '[')
                begin_sequence(e, CONTROL);
        else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
                e->state = STRING;
        else if (c >= ' ' && c <= '/')
                e->state = CHARSET;
        else if (c != ESC)
                e->state = TEXT;
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
static void end_control(struct escapes *e, struct buf *out, unsigned char final, bool alone)
{
        bool plain = e->n < sizeof(e->sequence) && strspn(e->sequence, "0123456789;:") >= e->n;

        e->state = TEXT;
        if (!plain || (final != 'm' && !(alone && memchr("ABCDEFGHJKf", final, 11))))
                return;
        if (e->resume)
                put_bytes(out, e->colour, e->n_colour);
        e->resume = false;
        if (final == 'm')
                note_colour(e);
        put_bytes(out, "\033[", 2);
        put_bytes(out, e->sequence, e->n);
        put_bytes(out, (const char *)&final, 1);
}

static void take_control_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c >= 0x40 && c <= 0x7e) {
                e->sequence[e->n < sizeof(e->sequence) ? e->n : sizeof(e->sequence) - 1] = '\0';
                end_control(e, out, c, alone);
        } else if (c == '\n') {
                break_sequence(e, out);
        } else if (c == ESC) {
                e->state = ESCAPE;
        } else if (e->n < sizeof(e->sequence)) {
                e->sequence[e->n++] = (char)c;
        }
}

/* OSC and similar strings end with BEL or ESC \; a newline ends a broken string. */
static void take_string_byte(struct escapes *e, struct buf *out, unsigned char c)
{
        if (c == '\n')
                put_newline(e, out);
        if (c == BEL || c == '\n')
                e->state = TEXT;
        else if (c == ESC)
                e->state = STRING_ESCAPE;
}

static void take_after_c2(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        e->state = TEXT;
        if (c == 0x9b) {
                begin_sequence(e, CONTROL);
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
                switch (e->state) {
                case TEXT:
                        take_text_byte(e, out, *c, alone);
                        break;
                case ESCAPE:
                        take_after_escape(e, out, *c);
                        break;
                case CONTROL:
                        take_control_byte(e, out, *c, alone);
                        break;
                case STRING:
                        take_string_byte(e, out, *c);
                        break;
                case STRING_ESCAPE:
                        e->state = *c == '\\' ? TEXT : STRING;
                        if (*c == '\n')
                                break_sequence(e, out);
                        break;
                case C2:
                        take_after_c2(e, out, *c, alone);
                        break;
                default: /* the last byte of a charset or the like */
                        e->state = TEXT;
                        if (*c == '\n')
                                break_sequence(e, out);
                }
        }
}
