/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reason: why a program ended, in its own words
 *
 * Found in the newest lines of its stderr: the exception behind a traceback, a panic, the report of
 * a sanitizer, the error of a library, whatever lines follow them. Pure; any bytes are fine.
 */
#pragma once

#include <stdbool.h>

enum reason_source {
        REASON_NONE, /* no line */
        REASON_LINE, /* the last line that is no frame, advice or word of a launcher */
        REASON_KNOWN /* a form in which programs tell why they end */
};

struct reason {
        enum reason_source source;
        bool echo; /* it tells of a peer that is gone */
        char text[512];
};

/* Finds the reason in @words, the newest stderr of a program that ended with @code, or 128 plus the
 * number of a signal. Of several known reasons the last one counts, except for those that only
 * follow from another. One that other lines follow counts if programs with such a reason end with
 * @code. */
void reason_find(struct reason *ret, const char *words, int code);

/* Sets @ret to the first line of @text that is not blank. */
void reason_first_line(struct reason *ret, const char *text);
