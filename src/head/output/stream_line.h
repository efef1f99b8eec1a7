/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream_line: the lines of a stream as they stand on the terminal, behind their labels
 *
 * The present line may be unfinished, and may be a state of a line that is drawn again and again:
 * then only the last state is added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/term/escapes.h"
#include "head/term/redraw.h"

struct stream_line {
        /* set by the caller */
        char *prefix;
        size_t prefix_len;
        bool timed;              /* the time stands before the prefix (--timestamps): */
        int64_t us;              /* when its newest bytes came, by clock_ns() */
        bool raw, erase;         /* as in struct printer_options */
        int fd;                  /* of the terminal */
        struct escapes *escapes; /* of the stream, NULL = not filtered; the bytes are filtered */
        bool redraws;            /* redrawn lines get special care */
        struct redraw_rows rows; /* of the bytes that come */
        bool in_block;           /* their states stand in rows of printer_draw_live() */
        uint64_t drawn_ms;       /* when the last state of a line was drawn, 0 = never */
        /* the line so far */
        size_t columns;
        bool drawn;    /* it is a state, or has long been unfinished: it may be left */
        bool mid_line; /* the last byte on the terminal was not a newline */
        bool returned; /* that byte was a carriage return, behind the prefix */
        /* the time as text */
        int64_t time_us; /* of @us, 0 = none yet */
        char time[32];
};

static inline bool stream_line_is_labelled(const struct stream_line *l)
{
        return l->prefix_len || l->timed;
}

/* Returns the length of the label, or of the beginning of one that is cut, at the beginning of @n
 * bytes that stream_line_add() has made. */
size_t stream_line_find_label(const struct stream_line *l, const unsigned char *p, size_t n);
/* Appends the next @n bytes of the stream to @to. */
void stream_line_add(struct stream_line *l, struct buf *to, const unsigned char *p, size_t n);
