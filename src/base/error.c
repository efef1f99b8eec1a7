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
        char context[sizeof(err->text)], inner[sizeof(err->text)];
        size_t n;
        va_list ap;

        if (!err)
                return -1;
        va_start(ap, fmt);
        vsnprintf(context, sizeof(context), fmt, ap);
        va_end(ap);
        memcpy(inner, err->text, sizeof(inner));
        n = strlen(context);
        snprintf(err->text, sizeof(err->text), "%s: ", context);
        if (n + 2 < sizeof(err->text))
                snprintf(err->text + n + 2, sizeof(err->text) - n - 2, "%s", inner);
        return -err->code;
}
