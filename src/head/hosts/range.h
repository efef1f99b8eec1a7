/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range: "gpu[001-064,070]" -> names, "0,2,4-6" -> numbers
 *
 * A bracket holds numbers and runs of numbers, with an optional step: [1-4], [001-064,070],
 * [0-8/2]. A pattern may have several brackets; the last one runs fastest. Names are padded with
 * zeros as the first number of their run is: [01-100] gives 01 ... 99, 100.
 *
 * Pure and reentrant. Both functions return 0, or -EINVAL with @e filled in and nothing appended.
 */
#pragma once

#include <stddef.h>

#include "base/strv.h"
#include "head/hosts/hosts.h"

enum {
        RANGE_MAX_NAMES = 65536,
        RANGE_MAX_NAME = 253, /* letters in one name: DNS has no longer ones */
};

/* What is wrong with text[at..at+len). */
struct range_error {
        size_t at, len;
        int id;           /* HN number */
        char text[160];   /* a sentence without a full stop */
        const char *help; /* NULL, or the next step; static */
};

/* Appends the names. The letters outside of the brackets are copied as they are. */
int range_expand(const char *text, size_t len, struct strv *names, struct range_error *e);

/* Appends the numbers, each of them 0..max and named once. */
int range_numbers(const char *text, size_t len, int max, struct intlist *numbers,
                  struct range_error *e);
