/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rank has an unfinished line for each stream. The expression is matched against whole lines,
 * without colours; a line longer than READY_LINE_MAX is cut, and its beginning is matched. A match
 * ends the work for these bytes: the caller drops the rank's lines once the rank is ready. Time is
 * shared as in step_lines.c.
 */
#include "head/model/ready_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/core/pattern.h"
#include "head/term/escapes.h"
#include "wire/msg.h"

enum { READY_STREAMS = 2 };

struct ready_lines {
        struct timed_pattern re;
        int ranks;
        struct buf *begun; /* the unfinished lines, by rank and stream */
};

struct ready_lines *ready_lines_create(const char *re, int ranks)
{
        struct ready_lines *r = xcalloc(1, sizeof(*r));
        struct error err;

        r->ranks = ranks;
        r->begun = xcalloc((size_t)ranks * READY_STREAMS, sizeof(*r->begun));
        /* The options have checked the expression. */
        timed_pattern_open(&r->re, re, &err);
        return r;
}

void ready_lines_drop(struct ready_lines *r, int rank)
{
        for (int i = 0; i < READY_STREAMS; i++)
                buf_finish(&r->begun[rank * READY_STREAMS + i]);
}

void ready_lines_destroy(struct ready_lines *r)
{
        if (!r)
                return;
        for (int i = 0; i < r->ranks; i++)
                ready_lines_drop(r, i);
        timed_pattern_close(&r->re);
        free(r->begun);
        free(r);
}

static bool match_ready_line(struct ready_lines *r, const struct buf *line)
{
        CLEANUP(free_textp) char *text = xstrndup((const char *)buf_data(line), buf_len(line));

        if (strchr(text, '\033')) {
                char *plain = escapes_copy_plain(text);

                free(text);
                text = plain;
        }
        return timed_pattern_match(&r->re, text, 0, NULL);
}

bool ready_lines_put(struct ready_lines *r, int rank, uint8_t stream, const void *data, size_t len)
{
        struct buf *line = &r->begun[rank * READY_STREAMS + (stream == MSG_STDERR)];
        const char *p = data, *end = p + len;
        bool found = false;

        while (p < end && !found) {
                const char *from = p;

                while (p < end && *p != '\n' && *p != '\r')
                        p++;
                buf_append(line, from, MIN((size_t)(p - from), READY_LINE_MAX - buf_len(line)));
                /* The line has no end yet. */
                if (p++ == end)
                        break;
                found = buf_len(line) && match_ready_line(r, line);
                buf_clear(line);
        }
        return found;
}
