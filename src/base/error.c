/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct error *err, int code, const char *fmt, ...)
{
        va_list ap;

        if (!err)
                return -code;
        err->code = code;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        return -code;
}

int err_wrap(struct error *err, const char *fmt, ...)
{
        char inner[sizeof(err->text)];
        size_t n;
        va_list ap;

        if (!err)
                return -1;
        memcpy(inner, err->text, sizeof(inner));
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        n = strlen(err->text);
        for (const char *p = ": "; *p && n + 1 < sizeof(err->text); p++)
                err->text[n++] = *p;
        for (const char *p = inner; *p && n + 1 < sizeof(err->text); p++)
                err->text[n++] = *p;
        err->text[n] = '\0';
        return -err->code;
}
