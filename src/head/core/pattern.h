/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pattern: regular expressions of users, without those that could hang a process
 *
 * regexec() of the C library takes a time that grows exponentially with back references, and
 * memory and time that grow with repeats of repeats. Without them the time grows with the length of
 * the text: callers in the main loop bound it. Pure.
 */
#pragma once

#include <regex.h>

#include "base/error.h"

enum { PATTERN_REPEATS = 1000 };

/* Compiles @text, an extended regular expression. 0; or with @err, and nothing is to be freed:
 * -EINVAL: it is none; -EDOM: it has a back reference, or more than PATTERN_REPEATS parts. */
int pattern_compile(regex_t *ret, const char *text, int flags, struct error *err);
