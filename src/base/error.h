/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error: a sentence on the caller's stack that gains context on the way up
 *
 * A function that can fail returns 0 on success, a negative errno with the sentence in @err on
 * failure, or a positive answer named in the header. It returns the error and never logs.
 */
#pragma once

#include "base/macros.h"

struct error {
        int code; /* an errno, 0 = no error */
        char text[512];
};

/* Writes the sentence and returns -@code. @err may be NULL. Too long texts are cut. */
int err_set(struct error *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* Puts "context: " in front of the sentence and returns -err->code. */
int err_wrap(struct error *err, const char *fmt, ...) PRINTF(2, 3);
