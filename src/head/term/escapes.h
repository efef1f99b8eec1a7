/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes: output of ranks, made harmless for a terminal
 *
 * Colours and text pass. Sequences are dropped when they could move the cursor over other ranks'
 * lines, change the state, title or clipboard of the terminal, or make the terminal answer. A
 * colour left on by a line is switched off at the end of the line, or at a carriage return, and on
 * again behind. Characters that change the direction of text are dropped: they would turn the
 * prefix around, too. A lone rank may use them, and move the cursor, as progress bars do. Carriage
 * returns of several ranks are handled by the printer. Source: ECMA-48; xterm's ctlseqs for OSC,
 * DCS, APC, PM; Unicode UAX 9.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct escapes {
        unsigned char state;    /* private */
        bool colour_on, resume; /* resume: repeat the colour before the next text */
        char colour[64];        /* the sequences that switched it on */
        unsigned char n_colour;
        char sequence[64];
        unsigned char n;
};

#define ESCAPES_INIT                                                                               \
        {                                                                                          \
                0                                                                                  \
        }

/* Appends the harmless part of the next @n bytes of a stream. A sequence may come in pieces. */
void escapes_filter(struct escapes *e, struct buf *out, const void *p, size_t n, bool alone);
/* Returns @text without escape sequences and other control characters but tabs and ends of lines,
 * as it is read; malloc'ed. */
char *escapes_copy_plain(const char *text);
/* Switches a colour off, so that others may write, and on again with the next text. */
void escapes_pause(struct escapes *e, struct buf *out);
