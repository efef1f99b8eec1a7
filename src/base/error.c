/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sentence and the next step share one text: err_help() puts the step behind a newline, and
 * err_cut_help() makes two strings of the text for the printer. err_wrap() leaves number and next
 * step as they are. With a NULL @err nothing is written, so a caller may ignore the reason.
 */
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
        err->number = 0;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        return -code;
}

int err_wrap(struct error *err, const char *fmt, ...)
{
        const size_t most = sizeof(err->text) - 1;
        char inner[sizeof(err->text)];
        va_list ap;

        if (!err)
                return -1; /* the code is unknown here */
        memcpy(inner, err->text, sizeof(inner));
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        /* Both lengths are limited: a long sentence loses the end, never the context. */
        strncat(err->text, ": ", most - strlen(err->text));
        strncat(err->text, inner, most - strlen(err->text));
        return -err->code;
}

int err_help(struct error *err, const char *fmt, ...)
{
        size_t len;
        va_list ap;

        if (!err)
                return -1;
        len = strlen(err->text);
        /* Without room for the newline the step is left out. */
        len += (size_t)snprintf(err->text + len, sizeof(err->text) - len, "\n");
        va_start(ap, fmt);
        if (len < sizeof(err->text))
                vsnprintf(err->text + len, sizeof(err->text) - len, fmt, ap);
        va_end(ap);
        return -err->code;
}

const char *err_cut_help(struct error *err)
{
        char *end = strchr(err->text, '\n');

        if (!end)
                return NULL;
        *end = '\0';
        return end + 1;
}
