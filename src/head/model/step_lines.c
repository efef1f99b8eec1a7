/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole line is copied to the stack, because regexec() wants a NUL at the end. Only the beginning
 * of an unfinished line takes memory, until the end comes.
 *
 * Matching a line costs about 2 us, for a line of a flood more than all other work together. Of
 * lines received at once the newest are matched first, and the first match ends the search.
 * Matching gets a share of the time: head/core/pattern.h.
 */
#include "head/model/step_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/core/pattern.h"
#include "head/term/escapes.h"
#include "wire/msg.h"

enum {
        STREAMS = 2,
        /* The whole line and nine groups, as \1 to \9 of POSIX. */
        GROUPS = 10,
        /* Any number of 18 digits fits an int64_t. */
        DIGITS_MAX = 18,
};

struct step_line {
        struct buf begun; /* of the unfinished line */
        bool too_long;    /* the rest of the line is passed over */
};

struct step_lines {
        struct timed_pattern re;
        int ranks;
        bool tried, any; /* a line was matched; one had a step */
        step_found found;
        void *ctx;
        struct step_line *lines; /* by rank and stream */
};

int step_lines_check(const char *re, struct error *err)
{
        struct timed_pattern compiled;
        int r = timed_pattern_open(&compiled, re, err);

        if (r < 0)
                return r;
        /* Without a group a line could match, but would have no step. */
        r = compiled.re.re_nsub ? 0 : err_set(err, EINVAL, "it has no group for the step");
        timed_pattern_close(&compiled);
        return r;
}

/* Reads a group that is a decimal number. */
static bool read_step_group(const char *line, const regmatch_t *m, int64_t *ret)
{
        if (m->rm_so < 0 || m->rm_eo == m->rm_so || m->rm_eo - m->rm_so > DIGITS_MAX)
                return false;
        for (regoff_t i = m->rm_so; i < m->rm_eo; i++)
                if (!isdigit((unsigned char)line[i]))
                        return false;
        *ret = strtoll(line + m->rm_so, NULL, 10);
        return true;
}

/* Returns whether the line has a step. */
static bool match_line(struct step_lines *s, int rank, const void *text, size_t len)
{
        char line[STEP_LINE_MAX + 1];
        int64_t numbers[2] = { 0 };
        regmatch_t m[GROUPS];
        int n = 0;

        /* A blank line, as between \r and \n, is not worth the time. */
        if (!len || len > STEP_LINE_MAX)
                return false;
        memcpy(line, text, len);
        line[len] = '\0';
        /* Colours would stand between the words of the expression; the plain text is never
         * longer. */
        if (memchr(line, '\033', len)) {
                CLEANUP(free_textp) char *plain = escapes_copy_plain(line);

                snprintf(line, sizeof(line), "%s", plain);
        }
        s->tried = true;
        if (!timed_pattern_match(&s->re, line, GROUPS, m))
                return false;
        for (int i = 1; i < GROUPS && n < 2; i++)
                n += read_step_group(line, &m[i], &numbers[n]);
        s->any |= n > 0;
        if (n)
                s->found(s->ctx, rank, numbers[0], numbers[1]);
        return n;
}

/* A carriage return ends a line, too: progress bars write no newline. */
static bool ends_step_line(char c)
{
        return c == '\n' || c == '\r';
}

/* Matches ended lines from the newest on, until one has a step. */
static bool match_newest_line(struct step_lines *s, int rank, const char *p, const char *end)
{
        bool found = false;

        for (int n = 0; p < end && n < STEP_LINES_AT_ONCE && !found; n++) {
                const char *to = end - 1;

                for (end = to; end > p && !ends_step_line(end[-1]);)
                        end--;
                found = match_line(s, rank, end, (size_t)(to - end));
        }
        return found;
}

/* Takes the end of the unfinished line, and matches it. */
static void end_step_line(struct step_lines *s, int rank, struct step_line *l, const char *p,
                          size_t n)
{
        if (l->too_long || buf_len(&l->begun) + n > STEP_LINE_MAX)
                return;
        if (buf_len(&l->begun)) {
                buf_append(&l->begun, p, n);
                p = (const char *)buf_data(&l->begun);
                n = buf_len(&l->begun);
        }
        match_line(s, rank, p, n);
}

void step_lines_put(struct step_lines *s, int rank, uint8_t stream, const void *data, size_t len)
{
        const char *p = data, *end = p + len, *first = p, *rest = end;
        struct step_line *l;

        if (!s || rank < 0 || rank >= s->ranks)
                return;
        l = &s->lines[rank * STREAMS + (stream == MSG_STDERR)];
        while (first < end && !ends_step_line(*first))
                first++;
        /* The bytes end at least one line. The beginning of the first may have come before, so that
         * line is tried last: the newest step counts. */
        if (first < end) {
                while (!ends_step_line(rest[-1]))
                        rest--;
                if (!match_newest_line(s, rank, first + 1, rest))
                        end_step_line(s, rank, l, p, (size_t)(first - p));
                buf_finish(&l->begun);
                l->too_long = false;
                p = rest;
        }
        /* The rest of such a line is passed over up to its end, and takes no memory. */
        l->too_long |= buf_len(&l->begun) + (size_t)(end - p) > STEP_LINE_MAX;
        if (l->too_long)
                buf_finish(&l->begun);
        else if (p < end)
                buf_append(&l->begun, p, (size_t)(end - p));
}

struct step_lines *step_lines_create(const char *re, int ranks, step_found found, void *ctx)
{
        struct step_lines *s = xcalloc(1, sizeof(*s));
        struct error err;

        *s = (struct step_lines){ .ranks = ranks, .found = found, .ctx = ctx };
        s->lines = xcalloc((size_t)ranks * STREAMS, sizeof(*s->lines));
        if (timed_pattern_open(&s->re, re, &err) == 0)
                return s;
        free(s->lines);
        free(s);
        return NULL;
}

bool step_lines_missed(const struct step_lines *s)
{
        return s && s->tried && !s->any;
}

void step_lines_destroy(struct step_lines *s)
{
        if (!s)
                return;
        for (int i = 0; i < s->ranks * STREAMS; i++)
                buf_finish(&s->lines[i].begun);
        timed_pattern_close(&s->re);
        free(s->lines);
        free(s);
}
