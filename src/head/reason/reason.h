/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reason: why a program ended, in its own words
 *
 * Found in the newest lines of its stderr: the exception behind a traceback, a panic, the report of
 * a sanitizer, the error of a library, with any lines behind. Pure; any bytes are fine.
 */
#pragma once

#include <stdbool.h>

enum reason_source {
        REASON_NONE, /* no line */
        REASON_LINE, /* the last line that is no frame, advice or word of a launcher */
        REASON_KNOWN /* a known form of a program's last error */
};

struct reason {
        enum reason_source source;
        bool echo; /* the text reports a lost peer */
        char text[512];
};

/* Finds the reason in @words, the newest stderr of a program that ended with @code, or 128 plus
 * the number of a signal. Of several known reasons the last one counts, unless it is a mere
 * consequence of another. A reason with other lines below counts if programs with such a reason
 * end with @code. */
void reason_find(struct reason *ret, const char *words, int code);

/* Sets @ret to the first line of @text with any text. */
void reason_first_line(struct reason *ret, const char *text);
