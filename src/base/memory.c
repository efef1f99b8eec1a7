/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_code.h"

/* Exits instead of abort(): running out of memory is no defect, and the exit code stays 125. */
static void *need_memory(void *p)
{
        if (!p) {
                fputs("hnlaunch: out of memory  (exit 125)\n", stderr);
                _exit(EX_FAILED); /* no handlers of atexit(): these may allocate */
        }
        return p;
}

void *xcalloc(size_t n, size_t size)
{
        return need_memory(calloc(n ? n : 1, size));
}

void *xrealloc(void *p, size_t n, size_t size)
{
        /* A product that overflows is no memory, too. */
        return need_memory(size && n > SIZE_MAX / size ? NULL : realloc(p, n * size));
}

void *xgrow(void *v, size_t n, size_t *cap, size_t size)
{
        if (n < *cap)
                return v;
        *cap = *cap ? *cap * 2 : 16;
        return xrealloc(v, *cap, size);
}

char *xstrdup(const char *s)
{
        return need_memory(strdup(s));
}

char *xstrndup(const char *s, size_t len)
{
        return need_memory(strndup(s, len));
}

char *xvasprintf(const char *fmt, va_list ap)
{
        char *text;

        return vasprintf(&text, fmt, ap) < 0 ? need_memory(NULL) : text;
}

char *xasprintf(const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        return text;
}

void free_textp(char **text)
{
        free(*text);
}
