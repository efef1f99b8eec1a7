/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for a name compares the first character before strncmp() is called: a launch looks for
 * some forty names in each rank's environment. strv_env_merge() hashes the names instead, because a
 * user may export tens of thousands of variables; the few of a rank are moved without a table.
 */
#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(size) xcalloc(1, size)
#include <uthash.h>

void strv_finish(struct strv *s)
{
        for (size_t i = 0; i < s->n; i++)
                free(s->v[i]);
        free(s->v);
        *s = (struct strv)STRV_INIT;
}

void strv_push_take(struct strv *s, char *text)
{
        if (s->n + 2 > s->cap) { /* the new string and the NULL */
                s->cap = MAX(s->cap * 2, (size_t)8);
                s->v = xrealloc(s->v, s->cap, sizeof(*s->v));
        }
        s->v[s->n++] = text;
        s->v[s->n] = NULL;
}

void strv_push(struct strv *s, const char *text)
{
        strv_push_take(s, xstrdup(text));
}

void strv_push_mem(struct strv *s, const void *text, size_t len)
{
        char *copy = xcalloc(len + 1, 1);

        memcpy(copy, text, len);
        strv_push_take(s, copy);
}

void strv_pushf(struct strv *s, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        strv_push_take(s, xvasprintf(fmt, ap));
        va_end(ap);
}

void strv_copy(struct strv *to, const struct strv *from)
{
        for (size_t i = 0; i < from->n; i++)
                strv_push(to, from->v[i]);
}

bool strv_has(const struct strv *s, const char *text)
{
        for (size_t i = 0; i < s->n; i++)
                if (!strcmp(s->v[i], text))
                        return true;
        return false;
}

/* Index of NAME=..., or n. */
static size_t env_find(const struct strv *s, const char *name)
{
        size_t len = strlen(name), i;

        for (i = 0; i < s->n; i++)
                if (*s->v[i] == *name && !strncmp(s->v[i], name, len) && s->v[i][len] == '=')
                        break;
        return i;
}

const char *strv_env_get(const struct strv *s, const char *name)
{
        size_t i = env_find(s, name);

        return i == s->n ? NULL : s->v[i] + strlen(name) + 1;
}

void strv_env_add(struct strv *s, const char *name, const char *value)
{
        size_t n = strlen(name), len = strlen(value);
        char *pair = xcalloc(n + len + 2, 1);

        memcpy(pair, name, n);
        pair[n] = '=';
        memcpy(pair + n + 1, value, len);
        strv_push_take(s, pair);
}

void strv_env_set(struct strv *s, const char *name, const char *value)
{
        size_t i = env_find(s, name);

        /* Added first: @value may be lent from the old entry. */
        strv_env_add(s, name, value);
        if (i == s->n - 1)
                return;
        free(s->v[i]);
        s->v[i] = s->v[--s->n];
        s->v[s->n] = NULL;
}

void strv_env_set_number(struct strv *s, const char *name, uint32_t value)
{
        char text[12], *at = text + sizeof(text) - 1; /* a uint32_t has 10 digits */

        *at = '\0';
        do
                *--at = (char)('0' + value % 10);
        while (value /= 10);
        strv_env_set(s, name, at);
}

void strv_env_setf(struct strv *s, const char *name, const char *fmt, ...)
{
        CLEANUP(free_textp) char *longer = NULL;
        char value[128];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(value, sizeof(value), fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t)n >= sizeof(value)) {
                va_start(ap, fmt);
                longer = xvasprintf(fmt, ap);
                va_end(ap);
        }
        strv_env_set(s, name, longer ? longer : value);
}

void strv_env_unset(struct strv *s, const char *pattern)
{
        size_t len = strcspn(pattern, "*"), n = 0;

        for (size_t i = 0; i < s->n; i++)
                /* A star: any rest of the name will do. */
                if (!strncmp(s->v[i], pattern, len) && (pattern[len] || s->v[i][len] == '='))
                        free(s->v[i]);
                else
                        s->v[n++] = s->v[i];
        s->n = n;
        if (s->v)
                s->v[n] = NULL;
}

/* A name of the pairs to be merged. */
struct merged_name {
        UT_hash_handle hh;
        const char *pair; /* the last with this name */
        bool placed;
};

/* @pair may lack the value: the name ends at `=` or at the end. */
static struct merged_name *find_merged_name(struct merged_name *names, const char *pair)
{
        struct merged_name *m;

        HASH_FIND(hh, names, pair, strcspn(pair, "="), m);
        return m;
}

void strv_env_merge(struct strv *s, const struct strv *pairs)
{
        struct merged_name *pool, *names = NULL, *m;

        if (!pairs->n)
                return;
        /* One allocation for all names; most pairs have different names. */
        pool = xcalloc(pairs->n, sizeof(*pool));
        for (size_t i = 0; i < pairs->n; i++) {
                const char *pair = pairs->v[i];
                size_t len = strcspn(pair, "=");

                if (!len || !pair[len])
                        continue;
                m = find_merged_name(names, pair);
                if (!m) {
                        m = &pool[i];
                        HASH_ADD_KEYPTR(hh, names, pair, len, m);
                }
                m->pair = pair;
        }
        for (size_t i = 0; i < s->n; i++) {
                m = find_merged_name(names, s->v[i]);
                /* A second entry of the name in @s stays: getenv() finds the first. */
                if (!m || m->placed || !strchr(s->v[i], '='))
                        continue;
                free(s->v[i]);
                s->v[i] = xstrdup(m->pair);
                m->placed = true;
        }
        for (m = names; m; m = m->hh.next) /* in order of arrival */
                if (!m->placed)
                        strv_push(s, m->pair);
        HASH_CLEAR(hh, names);
        free(pool);
}

void strv_env_move(struct strv *s, struct strv *pairs)
{
        size_t n = s->n;

        for (size_t k = 0; k < pairs->n; k++) {
                char *pair = pairs->v[k];
                /* With the `=`, so that no longer name fits. */
                size_t len = (size_t)(strchr(pair, '=') + 1 - pair), i = 0;

                while (i < n && (*s->v[i] != *pair || strncmp(s->v[i], pair, len) != 0))
                        i++;
                if (i == n) {
                        strv_push_take(s, pair);
                } else {
                        free(s->v[i]);
                        s->v[i] = pair;
                }
        }
        pairs->n = 0; /* the strings belong to @s now */
        strv_finish(pairs);
}
