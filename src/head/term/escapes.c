/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state machine over single bytes, so that a sequence may come in pieces. Parameters of ESC [ are
 * kept in escapes.sequence until the final byte decides, and so are the bytes of a character; every
 * other sequence is dropped as it comes. A newline ends every state, so a broken sequence never
 * swallows the next line.
 *
 * Colours are kept in escapes.colour since they were last switched off. escapes_pause() switches
 * them off at the end of a line and sets @resume, with which the next visible text repeats them.
 */
#include "head/term/escapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/printable.h"

enum {
        TEXT,
        ESCAPE,        /* behind ESC */
        CONTROL,       /* in ESC [ parameters */
        STRING,        /* in OSC, DCS, SOS, PM or APC */
        STRING_ESCAPE, /* there, behind ESC */
        WIDE,          /* in a UTF-8 character, kept in escapes.sequence */
        CHARSET,       /* before the last byte of ESC ( and the like */
};

enum { ESC = 0x1b, BEL = 0x07 };

void escapes_pause(struct escapes *e, struct buf *out)
{
        /* A second pause without text between has nothing to switch off. */
        if (e->colour_on && !e->resume)
                buf_append(out, "\033[0m", 4);
        /* The colour returns with the next text, not with the next newline. */
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

/* Takes a byte outside of sequences and characters. Control characters are dropped, but for tabs,
 * carriage returns and, of a lone rank, backspaces, with which spinners step back. */
static void take_text_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        if (c == ESC) {
                e->state = ESCAPE;
        } else if (c >= 0xc2 && c <= 0xf4) {
                /* The first bytes of UTF-8; 0xc0, 0xc1 and 0xf5 to 0xff begin no character. */
                e->state = WIDE;
                e->sequence[0] = (char)c;
                e->n = 1;
        } else if (c == '\r') {
                if (!alone) /* a line that is drawn again begins without a colour, too */
                        escapes_pause(e, out);
                buf_append(out, "\r", 1);
        } else if (c >= ' ' ? c < 0x7f || c >= 0xa0 : c == '\t' || (c == '\b' && alone)) {
                /* bytes of 0x80 to 0x9f outside of a character are commands to some terminals */
                put_visible(e, out, &c, 1);
        }
}

/* Takes the byte behind ESC, or the command that a character of C1 stands for. Two-byte commands,
 * such as ESC c, which resets a terminal, are dropped here. */
static void take_after_escape(struct escapes *e, unsigned char c)
{
        if (c == '[') {
                e->state = CONTROL;
                e->n = 0;
        } else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
                /* OSC (title, clipboard), DCS, SOS, PM, APC: strings with an end of their own. */
                e->state = STRING;
        } else if (c >= ' ' && c <= '/') {
                /* An intermediate byte, as in ESC ( 0: one more byte ends the command. */
                e->state = CHARSET;
        } else if (c != ESC) {
                /* After ESC ESC the second one begins the command. */
                e->state = TEXT;
        }
}

/* Remembers a colour sequence that was passed on. ESC [ m and ESC [ 0 m switch all off; any other
 * adds to the colour before, as bold and red may come in two sequences. When the room is full, the
 * earlier sequences are forgotten, and only the latest is repeated. */
static void note_colour(struct escapes *e)
{
        /* ESC [ 0 ; 1 m is not recognised as the end of a colour: repeating such a
         * sequence does no harm. */
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
        /* A sequence longer than the room is read to its end and dropped: no colour is so long. */
        bool fits = e->n < sizeof(e->sequence);

        /* A byte before the final one. ESC aborts the sequence and begins
         * another, as on a terminal. */
        if (c < 0x40 || c > 0x7e) {
                if (c == ESC)
                        e->state = ESCAPE;
                else if (fits)
                        e->sequence[e->n++] = (char)c;
                return;
        }
        e->state = TEXT;
        e->sequence[fits ? e->n : sizeof(e->sequence) - 1] = '\0';
        /* Private parameters, as in ESC [ ? 1049 h, change modes of the terminal. */
        if (!fits || strspn(e->sequence, "0123456789;:") < e->n)
                return;
        /* A to H and f move the cursor, J and K erase; m is a colour. */
        if (c != 'm' && !(alone && memchr("ABCDEFGHJKf", c, 11)))
                return;
        put_visible(e, out, "\033[", 2);
        buf_append(out, e->sequence, e->n);
        buf_append(out, &c, 1);
        if (c == 'm')
                note_colour(e);
}

/* Takes a whole character. U+0080 to U+009F are the commands ESC @ to ESC _ in one character. */
static void take_wide_char(struct escapes *e, struct buf *out, uint32_t c, bool alone)
{
        e->state = TEXT;
        if (c < 0xa0)
                take_after_escape(e, (unsigned char)(c - 0x40));
        else if (alone || !printable_turns_text(c))
                /* Marks of direction would turn the label of a rank around; a
                 * lone rank has no label. */
                put_visible(e, out, e->sequence, e->n);
}

/* Appends only the first byte of a broken character: letters of Latin-1 have one byte. 0xc2 is
 * dropped, because the next byte could complete a command of C1 on the terminal. */
static void put_broken_char(struct escapes *e, struct buf *out)
{
        if ((unsigned char)e->sequence[0] != 0xc2)
                put_visible(e, out, e->sequence, 1);
        e->state = TEXT;
}

/* Takes a byte behind the first of a UTF-8 character. */
static void take_wide_byte(struct escapes *e, struct buf *out, unsigned char c, bool alone)
{
        unsigned char first = (unsigned char)e->sequence[0];
        size_t need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
        uint32_t whole;

        if (c >= 0x80 && c < 0xc0) {
                e->sequence[e->n++] = (char)c;
                if (e->n == need && printable_decode((unsigned char *)e->sequence, need, &whole))
                        take_wide_char(e, out, whole, alone);
                else if (e->n == need)
                        /* An overlong form, a surrogate, or above U+10FFFF: dropped whole. */
                        e->state = TEXT;
                return;
        }
        put_broken_char(e, out);
        take_text_byte(e, out, c, alone);
}

/* Returns the number of bytes of plain ASCII at @p. */
static size_t count_plain(const unsigned char *p, const unsigned char *end)
{
        const unsigned char *c = p;

        while (c < end && *c >= ' ' && *c < 0x7f)
                c++;
        return (size_t)(c - p);
}

void escapes_filter(struct escapes *e, struct buf *out, const void *p, size_t n, bool alone)
{
        const unsigned char *c = p, *end = c + n;
        size_t plain;

        for (; c < end; c++) {
                /* Most output is plain ASCII, and is appended in runs. */
                plain = e->state == TEXT ? count_plain(c, end) : 0;
                if (plain) {
                        put_visible(e, out, c, plain);
                        c += plain - 1;
                        continue;
                }
                if (*c == '\n') { /* ends every sequence; the next line begins without a colour */
                        if (e->state == WIDE)
                                put_broken_char(e, out);
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
                /* ESC and another byte than a backslash stay within the string. */
                case STRING_ESCAPE:
                        e->state = *c == '\\' ? TEXT : STRING;
                        break;
                case WIDE:
                        take_wide_byte(e, out, *c, alone);
                        break;
                default: /* the last byte of a charset or the like */
                        e->state = TEXT;
                }
        }
}

/* Returns the end of the escape sequence at @p: CSI and OSC (ECMA-48), or two bytes. A sequence
 * without an end is skipped up to the newline, which stays. */
static const char *skip_escape(const char *p)
{
        if (*++p == '[') {
                for (p++; *p && *p != '\n' && (unsigned char)*p < 0x40;)
                        p++;
        } else if (*p == ']') {
                for (p++; *p && *p != '\n' && *p != '\a' && *p != '\033';)
                        p++;
                /* The string terminator ESC \ has two bytes, BEL only one. */
                if (*p == '\033' && p[1] == '\\')
                        p++;
        }
        return *p && *p != '\n' ? p + 1 : p;
}

char *escapes_copy_plain(const char *words)
{
        char *text = xcalloc(strlen(words) + 1, 1), *to = text;

        while (*words) {
                if (*words == '\033')
                        words = skip_escape(words);
                else if ((unsigned char)*words >= ' ' || strchr("\t\n\r", *words))
                        *to++ = *words++;
                else
                        words++;
        }
        return text;
}
