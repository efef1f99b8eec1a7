/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both functions read runs of numbers separated by commas, take_number_run(). range_expand() cuts
 * the text into literals and brackets (struct pattern), expands each bracket alone, checks the
 * product of the lengths against the limit, and only then makes the names. range_numbers() collects
 * into a new list, which is appended when the whole text is good.
 */
#include "head/hosts/range.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { HN_BAD_RANGE = 113, MAX_BRACKETS = 8, MAX_DIGITS = 9 };

#define RANGE_FAIL(e, at, len, ...) range_error_set(e, HN_BAD_RANGE, at, len, NULL, __VA_ARGS__)

/* A run of numbers: lo, lo + step, ... up to hi; a single number has lo == hi. */
struct number_run {
        int lo, hi, step, width;
};

/* A pattern is literal, bracket, literal, bracket, ..., literal. */
struct pattern {
        const char *literal[MAX_BRACKETS + 1];
        size_t literal_len[MAX_BRACKETS + 1];
        struct strv bracket[MAX_BRACKETS];
        size_t n_brackets;
};

int range_error_set(struct range_error *e, int id, size_t at, size_t len, const char *help,
                    const char *fmt, ...)
{
        va_list ap;

        *e = (struct range_error){ .at = at, .len = MAX(len, (size_t)1), .id = id, .help = help };
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof(e->text), fmt, ap);
        va_end(ap);
        return -EINVAL;
}

size_t range_find(const char *text, size_t at, size_t end, const char *stop)
{
        bool inside = false;

        for (; at < end; at++) {
                if (text[at] == '[' || text[at] == ']')
                        inside = text[at] == '[';
                else if (!inside && strchr(stop, text[at]))
                        break;
        }
        return at;
}

/* Reads the number at text[*at..end) and moves *at behind. */
static int take_range_number(const char *text, size_t *at, size_t end, int *ret,
                             struct range_error *e)
{
        size_t from = *at, i = from;
        int v = 0;

        while (i < end && text[i] >= '0' && text[i] <= '9')
                i++;
        if (i == from)
                return RANGE_FAIL(e, from, 1,
                                  i < end ? "expected a number" : "a number is missing here");
        if (i - from > MAX_DIGITS)
                return RANGE_FAIL(e, from, i - from, "the number has more than %d digits",
                                  MAX_DIGITS);
        for (size_t k = from; k < i; k++)
                v = v * 10 + (text[k] - '0');
        *at = i;
        *ret = v;
        return 0;
}

/* Reads "4", "1-4" or "0-8/2" at text[*at] and moves *at behind. */
static int take_number_run(const char *text, size_t *at, size_t end, struct number_run *run,
                           struct range_error *e)
{
        size_t from = *at, high, step_at;
        int r;

        r = take_range_number(text, at, end, &run->lo, e);
        if (r < 0)
                return r;
        run->width = (int)(*at - from);
        run->hi = run->lo;
        run->step = 1;
        if (*at == end || text[*at] != '-')
                return 0;

        high = ++*at;
        r = take_range_number(text, at, end, &run->hi, e);
        if (r < 0)
                return r;
        if (run->hi < run->lo)
                return RANGE_FAIL(e, from, *at - from, "the range runs backwards");
        if (text[high] == '0' && *at - high != (size_t)run->width)
                return RANGE_FAIL(e, from, *at - from,
                                  "both ends must have the same number of digits");
        if (*at == end || text[*at] != '/')
                return 0;

        step_at = ++*at;
        r = take_range_number(text, at, end, &run->step, e);
        if (r < 0)
                return r;
        if (!run->step)
                return RANGE_FAIL(e, step_at, *at - step_at, "the step must be at least 1");
        return 0;
}

static size_t count_run(const struct number_run *run)
{
        return (size_t)((run->hi - run->lo) / run->step) + 1;
}

static void expand_run(const struct number_run *run, struct strv *to)
{
        for (size_t i = 0, n = count_run(run); i < n; i++)
                strv_pushf(to, "%0*d", run->width, run->lo + (int)i * run->step);
}

/* Appends the names in a bracket, text[at..end). */
static int take_bracket(const char *text, size_t at, size_t end, struct strv *to,
                        struct range_error *e)
{
        size_t from = at;
        struct number_run run;

        for (;; at++) {
                size_t start = at;
                int r = take_number_run(text, &at, end, &run, e);

                if (r < 0)
                        return r;
                if (count_run(&run) > RANGE_MAX_NAMES - to->n)
                        return RANGE_FAIL(e, from, end - from, "the range has more than %d names",
                                          RANGE_MAX_NAMES);
                if (at < end && text[at] != ',')
                        return RANGE_FAIL(e, start, at + 1 - start,
                                          "numbers are written 1-4, 7 or 1,2,5-8");
                expand_run(&run, to);
                if (at >= end)
                        return 0;
        }
}

static void pattern_finish(struct pattern *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(p->bracket); i++)
                strv_finish(&p->bracket[i]);
}

static int parse_pattern(struct pattern *p, const char *text, size_t len, struct range_error *e)
{
        size_t at = 0;

        for (;;) {
                size_t from = at;
                const char *close;
                int r;

                while (at < len && text[at] != '[' && text[at] != ']')
                        at++;
                p->literal[p->n_brackets] = text + from;
                p->literal_len[p->n_brackets] = at - from;
                if (at == len)
                        return 0;
                if (text[at] == ']')
                        return RANGE_FAIL(e, at, 1, "this `]` has no `[` before it");
                close = memchr(text + at, ']', len - at);
                if (!close)
                        return RANGE_FAIL(e, at, len - at, "this `[` has no `]`");
                if (p->n_brackets == MAX_BRACKETS)
                        return RANGE_FAIL(e, at, len - at, "there are more than %d brackets",
                                          MAX_BRACKETS);
                r = take_bracket(text, at + 1, (size_t)(close - text), &p->bracket[p->n_brackets],
                                 e);
                if (r < 0)
                        return r;
                p->n_brackets++;
                at = (size_t)(close - text) + 1;
        }
}

/* Returns the number of names; 0 with @e filled in when names are too many or too long. */
static size_t count_pattern_names(const struct pattern *p, size_t len, struct range_error *e)
{
        size_t count = 1, letters = p->literal_len[p->n_brackets];

        for (size_t i = 0; i < p->n_brackets; i++) {
                count *= p->bracket[i].n;
                letters += p->literal_len[i] + strlen(p->bracket[i].v[p->bracket[i].n - 1]);
                if (count > RANGE_MAX_NAMES) {
                        RANGE_FAIL(e, 0, len, "the range has more than %d names", RANGE_MAX_NAMES);
                        return 0;
                }
        }
        if (letters > RANGE_MAX_NAME) {
                RANGE_FAIL(e, 0, len, "the name has more than %d letters", RANGE_MAX_NAME);
                return 0;
        }
        return count;
}

/* Appends name number @index; the last bracket runs fastest. */
static void add_pattern_name(const struct pattern *p, size_t index, struct strv *names)
{
        const char *part[MAX_BRACKETS] = { 0 };
        struct buf name = BUF_INIT;

        for (size_t i = p->n_brackets; i-- > 0;) {
                part[i] = p->bracket[i].v[index % p->bracket[i].n];
                index /= p->bracket[i].n;
        }
        for (size_t i = 0; i < p->n_brackets; i++) {
                buf_append(&name, p->literal[i], p->literal_len[i]);
                buf_appends(&name, part[i]);
        }
        buf_append(&name, p->literal[p->n_brackets], p->literal_len[p->n_brackets]);
        strv_push_mem(names, buf_data(&name), buf_len(&name));
        buf_finish(&name);
}

int range_expand(const char *text, size_t len, struct strv *names, struct range_error *e)
{
        CLEANUP(pattern_finish) struct pattern p = { 0 };
        size_t count;
        int r;

        if (!len)
                return RANGE_FAIL(e, 0, 1, "a name is missing here");
        if (!memchr(text, '[', len) && !memchr(text, ']', len) && len <= RANGE_MAX_NAME) {
                strv_push_mem(names, text, len);
                return 0;
        }
        r = parse_pattern(&p, text, len, e);
        if (r < 0)
                return r;
        count = count_pattern_names(&p, len, e);
        if (!count)
                return -EINVAL;
        for (size_t i = 0; i < count; i++)
                add_pattern_name(&p, i, names);
        return 0;
}

/* Appends the run; -EINVAL names the first repeated number. */
static int add_number_run(const struct number_run *run, char *seen, struct intlist *to, size_t at,
                          size_t len, struct range_error *e)
{
        for (size_t i = 0, n = count_run(run); i < n; i++) {
                int v = run->lo + (int)i * run->step;

                if (seen[v])
                        return RANGE_FAIL(e, at, len, "%d is named twice", v);
                seen[v] = 1;
                intlist_add(to, v);
        }
        return 0;
}

static int take_number_list(const char *text, size_t len, int max, char *seen, struct intlist *to,
                            struct range_error *e)
{
        size_t at = 0;

        for (;; at++) {
                size_t start = at;
                struct number_run run;
                int r = take_number_run(text, &at, len, &run, e);

                if (r < 0)
                        return r;
                if (at < len && text[at] != ',')
                        return RANGE_FAIL(e, start, at + 1 - start,
                                          "numbers are written 0, 0-3 or 0,2,4-6");
                if (run.hi > max)
                        return RANGE_FAIL(e, start, at - start, "the highest number here is %d",
                                          max);
                r = add_number_run(&run, seen, to, start, at - start, e);
                if (r < 0)
                        return r;
                if (at >= len)
                        return 0;
        }
}

int range_numbers(const char *text, size_t len, int max, struct intlist *numbers,
                  struct range_error *e)
{
        char *seen = xcalloc((size_t)max + 1, 1);
        struct intlist found = { 0 };
        int r;

        r = take_number_list(text, len, max, seen, &found, e);
        for (size_t i = 0; r == 0 && i < found.n; i++)
                intlist_add(numbers, found.v[i]);
        intlist_finish(&found);
        free(seen);
        return r;
}
