/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error: a sentence on the caller's stack that gains context on the way up
 *
 * A function that can fail returns 0 on success, a negative errno with the sentence in @err on
 * failure, or a positive answer named in the header. It returns the error and never logs.
 */
#pragma once

#include "base/error_number.h"
#include "base/macros.h"

struct error {
        int code;                 /* an errno, 0 = no error */
        enum error_number number; /* of the message to the user; 0 = the choice of the caller */
        char text[512];           /* the sentence, and in a second line the next step */
};

/* Writes the sentence, without number and next step, and returns -@code. @err may be NULL. Too long
 * texts are cut. */
int err_set(struct error *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* Puts "context: " in front of the sentence and returns -err->code. */
int err_wrap(struct error *err, const char *fmt, ...) PRINTF(2, 3);

/* Adds the next step, at most once per error. Returns -err->code. */
int err_help(struct error *err, const char *fmt, ...) PRINTF(2, 3);
/* Cuts the next step off the sentence. Returns it, or NULL. */
const char *err_cut_help(struct error *err);
