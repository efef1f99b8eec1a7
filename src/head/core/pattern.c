/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and time of the C library grow with nested repeats, such as ((a{99}){99}){99}, so an
 * expression is measured before compilation: count_parts() walks over the text with a stack of
 * groups and multiplies the repeats, without understanding more of the syntax than where parts end.
 */
#include "head/core/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"

enum {
        DEPTH_MAX = 64,  /* groups within groups */
        MATCH_MS = 100,  /* time after which an expression pauses */
        PAUSE_TIMES = 4, /* as long as the time: a fifth in all */
};

/* Returns the end of the bracket expression at @p, behind its bracket. */
static const char *skip_bracket(const char *p)
{
        /* A bracket right behind [ or [^ stands for itself. */
        p += *p == '^';
        p += *p == ']';
        for (; *p && *p != ']'; p++) {
                char kind = p[1];
                const char *end;

                /* [:alpha:], [.x.] and [=x=] may have a bracket inside. */
                if (*p != '[' || !kind || !strchr(".:=", kind))
                        continue;
                for (end = p + 2; *end && !(end[0] == kind && end[1] == ']');)
                        end++;
                if (!*end)
                        return end;
                p = end + 1;
        }
        return p + (*p != '\0');
}

/* Returns how often the part before @p is repeated at most, "{2,5}", 1 without; *ret_end is behind
 * it. */
static size_t read_repeats(const char *p, const char **ret_end)
{
        const char *end = p + 1;
        size_t most = 0;

        *ret_end = p;
        if (*p != '{' || (!isdigit((unsigned char)*end) && *end != ','))
                return 1;
        for (; isdigit((unsigned char)*end) || *end == ','; end++) {
                size_t n = 0;

                for (; isdigit((unsigned char)*end); end++)
                        /* No digits overflow: beyond the limit all numbers are alike. */
                        n = MIN(n * 10 + (size_t)(*end - '0'), (size_t)PATTERN_REPEATS + 1);
                most = MAX(most, n);
                if (*end != ',')
                        break;
        }
        *ret_end = end + (*end == '}');
        return MAX(most, (size_t)1);
}

/* Passes over what repeats the part before @p, and returns how often at most. */
static size_t skip_repeats(const char **p)
{
        size_t times = 1;

        /* Repeats may follow each other, a{9}{9}. */
        for (const char *from = NULL; from != *p;) {
                from = *p;
                times *= read_repeats(*p, p);
                times = MIN(times, (size_t)PATTERN_REPEATS + 1);
                *p += strspn(*p, "*+?");
        }
        return times;
}

/* Passes over a part that is no group. */
static const char *skip_part(const char *p)
{
        if (*p == '[')
                return skip_bracket(p + 1);
        return p + (*p == '\\' && p[1] ? 2 : 1);
}

/* Counts the parts of an expression in which all repeats are written out, up to one more than
 * PATTERN_REPEATS. SIZE_MAX: there is a back reference. */
static size_t count_parts(const char *p)
{
        size_t parts[DEPTH_MAX] = { 0 }, last;
        int depth = 0;

        while (*p) {
                if (*p == '\\' && p[1] >= '1' && p[1] <= '9')
                        return SIZE_MAX;
                if (*p == '(') {
                        if (++depth == DEPTH_MAX)
                                return PATTERN_REPEATS + 1;
                        parts[depth] = 0;
                        p++;
                        continue;
                }
                if (*p == ')' && depth) {
                        /* An empty group is repeated, too. */
                        last = MAX(parts[depth], (size_t)1);
                        depth--;
                        p++;
                } else {
                        last = 1;
                        p = skip_part(p);
                }
                parts[depth] += last * skip_repeats(&p);
                parts[depth] = MIN(parts[depth], (size_t)PATTERN_REPEATS + 1);
        }
        return parts[0];
}

int pattern_compile(regex_t *ret, const char *text, int flags, struct error *err)
{
        size_t parts = count_parts(text);
        char why[128];
        int r;

        if (parts == SIZE_MAX)
                return err_set(err, EDOM, "it has a back reference, \\1 to \\9");
        if (parts > PATTERN_REPEATS)
                return err_set(err, EDOM,
                               "it has more than %d parts when its repeats are written out",
                               PATTERN_REPEATS);
        r = regcomp(ret, text, flags | REG_EXTENDED);
        if (!r)
                return 0;
        regerror(r, ret, why, sizeof(why));
        return err_set(err, EINVAL, "%s", why);
}

int timed_pattern_open(struct timed_pattern *p, const char *text, struct error *err)
{
        size_t parts = count_parts(text);
        int r;

        *p = (struct timed_pattern){ .text = text };
        /* Without repeats a text has at most as many parts as characters. */
        if (parts != SIZE_MAX && parts > strlen(text) + TIMED_REPEATS)
                return err_set(err, EDOM, "its repeats, written out, add more than %d parts",
                               TIMED_REPEATS);
        r = pattern_compile(&p->re, text, 0, err);
        p->is_open = r == 0;
        return r;
}

bool timed_pattern_match(struct timed_pattern *p, const char *text, size_t n, regmatch_t *m)
{
        int64_t begin = clock_ns(), end;
        struct error err;
        bool found;

        if (!p->is_open || begin < p->pause_ns)
                return false;
        found = regexec(&p->re, text, n, m, 0) == 0;
        end = clock_ns();
        p->spent_ns += end - begin;
        if (p->spent_ns < INT64_C(1000000) * MATCH_MS)
                return found;
        p->pause_ns = end + PAUSE_TIMES * p->spent_ns;
        p->spent_ns = 0;
        regfree(&p->re);
        p->is_open = pattern_compile(&p->re, p->text, 0, &err) == 0; /* else no memory */
        return found;
}

void timed_pattern_close(struct timed_pattern *p)
{
        if (p->is_open)
                regfree(&p->re);
        p->is_open = false;
}
