/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range: "gpu[001-064,070]" -> names, "0,2,4-6" -> numbers
 *
 * A bracket holds numbers and runs of numbers, with an optional step: [1-4], [001-064,070],
 * [0-8/2]. A pattern may have several brackets; the last runs fastest. Names are padded with zeros
 * like the first number of the run: [01-100] gives 01 ... 99, 100.
 *
 * Pure and reentrant.
 */
#pragma once

#include <stddef.h>

#include "base/macros.h"
#include "base/strv.h"
#include "head/hosts/hosts.h"

enum {
        RANGE_MAX_NAMES = 65536,
        RANGE_MAX_NAME = 253, /* letters in a name, the limit of DNS */
};

/* The piece text[at..at+len) of a text. */
struct text_range {
        size_t at, len;
};

/* An error in text[at..at+len). */
struct range_error {
        size_t at, len;
        int id;           /* HN number */
        char text[160];   /* a sentence without a full stop */
        const char *help; /* NULL, or the next step; static */
};

/* Fills in @e, at least a letter long. Returns -EINVAL. */
int range_error_set(struct range_error *e, int id, size_t at, size_t len, const char *help,
                    const char *fmt, ...) PRINTF(6, 7);

/* Finds the first of the letters @stop in text[at..end) outside of brackets; @end if there is none.
 */
size_t range_find(const char *text, size_t at, size_t end, const char *stop);

/* Appends the names of a pattern; letters outside of the brackets are copied unchecked. 0, or
 * -EINVAL with @e filled in and nothing appended. */
int range_expand(const char *text, size_t len, struct strv *names, struct range_error *e);

/* Appends the numbers of a list, each 0..max and given once. Returns as range_expand(). */
int range_numbers(const char *text, size_t len, int max, struct intlist *numbers,
                  struct range_error *e);
