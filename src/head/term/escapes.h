/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes: what ranks write, made harmless for a terminal
 *
 * Colours and text pass. What could move the cursor over other ranks' lines, change the terminal's
 * state, its title or its clipboard, or make it answer, is dropped; a colour that a line leaves on
 * is switched off at its end, or at a carriage return, and on again behind it. A lone rank may also
 * move the cursor, as progress bars do; what becomes of carriage returns is else for the printer.
 * Source: ECMA-48; xterm's ctlseqs for OSC, DCS, APC, PM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct escapes {
        unsigned char state;    /* private */
        bool colour_on, resume; /* resume: the colour goes on with the next text */
        char colour[64];        /* the sequences that made it */
        unsigned char n_colour;
        char sequence[64];
        unsigned char n;
};

#define ESCAPES_INIT                                                                               \
        {                                                                                          \
                0                                                                                  \
        }

/* Appends what may be shown of the next @n bytes of one stream. A sequence may come in pieces. */
void escapes_filter(struct escapes *e, struct buf *out, const void *p, size_t n, bool alone);
/* Others may write now: switches a colour off, and on again with the next text. */
void escapes_pause(struct escapes *e, struct buf *out);
