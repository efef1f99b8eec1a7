/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baseline: the results of a check as a file (`check --save`), and the comparison (`check
 * --baseline`)
 *
 * A node warns if a kept fact (check_is_kept()) has changed, or with less than 70 % of the earlier
 * bandwidth; else a pair of nodes does. Names of members are a promise (hnlaunch-check(1)). Pure
 * but for the two functions of files.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "head/check/check_judge.h"
#include "head/check/pair_book.h"

/* Returns the results; @book, NULL = nothing was measured, has the nodes @nodes of @r. */
json_t *baseline_describe(const struct check_report *r, const struct pair_book *book,
                          const size_t *nodes, size_t n);
/* Expects of each pair a part of the bandwidth in @base, so a slower pair is measured again.
 * @hosts: names of the places. */
void baseline_expect(const json_t *base, struct pair_book *book, const char *const *hosts,
                     size_t n);
/* Adds the line "baseline". */
void baseline_judge(struct check_report *r, const json_t *base, const struct pair_book *book,
                    const size_t *nodes, size_t n);

/* Reads a file of --save; NULL with @err. */
json_t *baseline_read(const char *path, struct error *err);
/* 0, or -errno with @err. */
int baseline_write(const char *path, const json_t *j, struct error *err);
