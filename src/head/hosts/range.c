/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both functions read runs of numbers separated by commas, take_number_run(). range_expand() goes
 * from bracket to bracket: the names so far are replaced by their continuations with the literal
 * before the bracket and each name in it, once their number and length are below the limits. Both
 * collect into a new list, which is appended when the whole text is good.
 */
#include "head/hosts/range.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"

enum { MAX_BRACKETS = 8, MAX_DIGITS = 9 }; /* digits: an int does not overflow */

#define RANGE_FAIL(e, at, len, ...) range_error_set(e, HN_BAD_RANGE, at, len, NULL, __VA_ARGS__)

/* A run of numbers: lo, lo + step, ... up to hi; a single number has lo == hi. */
struct number_run {
        int lo, hi, step, width;
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

        if (take_range_number(text, at, end, &run->lo, e) < 0)
                return -EINVAL;
        run->width = (int)(*at - from);
        run->hi = run->lo;
        run->step = 1;
        if (*at == end || text[*at] != '-')
                return 0;

        high = ++*at;
        if (take_range_number(text, at, end, &run->hi, e) < 0)
                return -EINVAL;
        /* The caller reports what follows; the number in front of it may be half of one. */
        if (*at < end && !strchr(",/", text[*at]))
                return 0;
        if (run->hi < run->lo)
                return RANGE_FAIL(e, from, *at - from, "the range runs backwards");
        /* [1-010] has two widths; [8-10] is fine, as no zero pads. */
        if (text[high] == '0' && *at - high != (size_t)run->width)
                return RANGE_FAIL(e, from, *at - from,
                                  "both ends must have the same number of digits");
        if (*at == end || text[*at] != '/')
                return 0;

        step_at = ++*at;
        if (take_range_number(text, at, end, &run->step, e) < 0)
                return -EINVAL;
        if (!run->step)
                return RANGE_FAIL(e, step_at, *at - step_at, "the step must be at least 1");
        return 0;
}

/* Appends the names in the bracket at text[*at] and moves *at behind. */
static int take_bracket(const char *text, size_t *at, size_t len, struct strv *to,
                        struct range_error *e)
{
        const char *close = memchr(text + *at, ']', len - *at);
        size_t from = *at + 1, next = from, end;

        if (!close)
                return RANGE_FAIL(e, *at, len - *at, "this `[` has no `]`");
        if (close == text + *at)
                return RANGE_FAIL(e, *at, 1, "this `]` has no `[` before it");
        end = (size_t)(close - text);
        for (;; next++) {
                size_t start = next, n;
                struct number_run run;

                if (take_number_run(text, &next, end, &run, e) < 0)
                        return -EINVAL;
                if (next < end && text[next] != ',')
                        return RANGE_FAIL(e, start, next + 1 - start,
                                          "numbers are written 1-4, 7 or 1,2,5-8");
                n = (size_t)((run.hi - run.lo) / run.step) + 1;
                /* Before any name is made: [1-999999999] must not take the memory. */
                if (n > RANGE_MAX_NAMES - to->n)
                        return RANGE_FAIL(e, from, end - from, "the range has more than %d names",
                                          RANGE_MAX_NAMES);
                for (size_t i = 0; i < n; i++)
                        strv_pushf(to, "%0*d", run.width, run.lo + (int)i * run.step);
                if (next >= end)
                        break;
        }
        *at = end + 1;
        return 0;
}

/* Replaces each name by its continuations with the @part of the text and each name of @bracket. The
 * lengths of the last names stand for all. */
static int continue_names(struct strv *names, const char *text, size_t len, struct text_range part,
                          const struct strv *bracket, struct range_error *e)
{
        struct strv longer = STRV_INIT;

        if (names->n * bracket->n > RANGE_MAX_NAMES)
                return RANGE_FAIL(e, 0, len, "the range has more than %d names", RANGE_MAX_NAMES);
        if (strlen(names->v[names->n - 1]) + part.len + strlen(bracket->v[bracket->n - 1]) >
            RANGE_MAX_NAME)
                return RANGE_FAIL(e, 0, len, "the name has more than %d letters", RANGE_MAX_NAME);
        for (size_t i = 0; i < names->n; i++)
                for (size_t k = 0; k < bracket->n; k++)
                        strv_pushf(&longer, "%s%.*s%s", names->v[i], (int)part.len, text + part.at,
                                   bracket->v[k]);
        strv_finish(names);
        *names = longer;
        return 0;
}

int range_expand(const char *text, size_t len, struct strv *names, struct range_error *e)
{
        CLEANUP(strv_finish) struct strv made = STRV_INIT;
        size_t at = 0;

        if (!len)
                return RANGE_FAIL(e, 0, 1, "a name is missing here");
        if (len <= RANGE_MAX_NAME && !memchr(text, '[', len) && !memchr(text, ']', len)) {
                strv_push_mem(names, text, len); /* most lines have a single name */
                return 0;
        }
        /* The name so far, from which each bracket makes many. */
        strv_push(&made, "");
        for (int brackets = 0; brackets <= MAX_BRACKETS; brackets++) {
                CLEANUP(strv_finish) struct strv bracket = STRV_INIT;
                struct text_range literal = { .at = at };
                bool last;

                while (at < len && text[at] != '[' && text[at] != ']')
                        at++;
                literal.len = at - literal.at;
                last = at == len;
                if (last)
                        strv_push(&bracket, ""); /* nothing follows */
                else if (brackets == MAX_BRACKETS)
                        break;
                else if (take_bracket(text, &at, len, &bracket, e) < 0)
                        return -EINVAL;
                if (continue_names(&made, text, len, literal, &bracket, e) < 0)
                        return -EINVAL;
                if (last) {
                        strv_copy(names, &made);
                        return 0;
                }
        }
        return RANGE_FAIL(e, at, len - at, "there are more than %d brackets", MAX_BRACKETS);
}

/* Appends the numbers of a list; @seen has a flag for each number up to @max. */
static int take_number_list(const char *text, size_t len, int max, bool *seen, struct intlist *to,
                            struct range_error *e)
{
        for (size_t at = 0;; at++) {
                size_t start = at;
                struct number_run run;

                if (take_number_run(text, &at, len, &run, e) < 0)
                        return -EINVAL;
                if (at < len && text[at] != ',')
                        return RANGE_FAIL(e, start, at + 1 - start,
                                          "numbers are written 0, 0-3 or 0,2,4-6");
                /* Before the loop below, which indexes @seen. */
                if (run.hi > max)
                        return RANGE_FAIL(e, start, at - start, "the highest number here is %d",
                                          max);
                for (int v = run.lo; v <= run.hi; v += run.step) {
                        if (seen[v])
                                return RANGE_FAIL(e, start, at - start, "%d is named twice", v);
                        seen[v] = true;
                        intlist_add(to, v);
                }
                if (at >= len)
                        return 0;
        }
}

int range_numbers(const char *text, size_t len, int max, struct intlist *numbers,
                  struct range_error *e)
{
        bool *seen = xcalloc((size_t)max + 1, sizeof(*seen));
        CLEANUP(intlist_finish) struct intlist found = { 0 };
        int r = take_number_list(text, len, max, seen, &found, e);

        for (size_t i = 0; r == 0 && i < found.n; i++)
                intlist_add(numbers, found.v[i]);
        free(seen);
        return r;
}
