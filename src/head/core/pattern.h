/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pattern: regular expressions of users, without those that could hang a process
 *
 * regexec() of the C library takes a time that grows exponentially with back references, and
 * memory and time that grow with repeats of repeats. Without them the time grows with the length of
 * the text: the main loop uses a struct timed_pattern. Pure but for its clock.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { PATTERN_REPEATS = 1000, TIMED_REPEATS = 64 };

/* Compiles @text, an extended regular expression. 0; or with @err, and nothing is to be freed:
 * -EINVAL: it is none; -EDOM: it has a back reference, or more than PATTERN_REPEATS parts. */
int pattern_compile(regex_t *ret, const char *text, int flags, struct error *err);

/* An expression that gets a fifth of the time of its loop: after 100 ms in all, texts do not match
 * for four times as long, and the memory of the expression, which grows with the texts, is freed.
 * One text cannot be interrupted. Its time grows with the square of the parts, so repeats may add
 * TIMED_REPEATS: .*a.{64}c takes 0.3 s for 1,000 characters, and .*a.{400}c would take 14. */
struct timed_pattern {
        regex_t re;
        const char *text; /* borrowed */
        int64_t spent_ns; /* since the last pause */
        int64_t pause_ns; /* clock_ns() at which it goes on */
        bool is_open;
};

/* As pattern_compile(), and -EDOM: repeats add more than TIMED_REPEATS parts. @text is borrowed. */
int timed_pattern_open(struct timed_pattern *p, const char *text, struct error *err);
/* regexec(): true = the text matches. */
bool timed_pattern_match(struct timed_pattern *p, const char *text, size_t n, regmatch_t *m);
void timed_pattern_close(struct timed_pattern *p); /* zeroed or not open is fine */
