/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void strv_finish(struct strv *s)
{
        for (size_t i = 0; i < s->n; i++)
                free(s->v[i]);
        free(s->v);
        *s = (struct strv)STRV_INIT;
}

void strv_push_take(struct strv *s, char *text)
{
        if (s->n + 2 > s->cap) {
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

void strv_remove(struct strv *s, size_t i)
{
        free(s->v[i]);
        memmove(s->v + i, s->v + i + 1, (s->n - i) * sizeof(*s->v));
        s->n--;
}

/* Index of NAME=..., or n. */
static size_t env_find(const struct strv *s, const char *name)
{
        size_t len = strlen(name), i;

        for (i = 0; i < s->n; i++)
                if (!strncmp(s->v[i], name, len) && s->v[i][len] == '=')
                        break;
        return i;
}

const char *strv_env_get(const struct strv *s, const char *name)
{
        size_t i = env_find(s, name);

        return i == s->n ? NULL : s->v[i] + strlen(name) + 1;
}

void strv_env_set(struct strv *s, const char *name, const char *value)
{
        char *pair = xasprintf("%s=%s", name, value);
        size_t i = env_find(s, name);

        if (i == s->n) {
                strv_push_take(s, pair);
        } else {
                free(s->v[i]);
                s->v[i] = pair;
        }
}

void strv_env_setf(struct strv *s, const char *name, const char *fmt, ...)
{
        va_list ap;
        char *value;

        va_start(ap, fmt);
        value = xvasprintf(fmt, ap);
        va_end(ap);
        strv_env_set(s, name, value);
        free(value);
}
