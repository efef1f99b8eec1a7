/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair judge: the lines net.bandwidth and net.latency of `hnlaunch check --pairs`. Pure.
 */
#pragma once

#include "head/check/check_judge.h"
#include "head/check/pair_book.h"

/* Adds the lines. @book, NULL = --pairs was not given, has the nodes @nodes of @r. */
void pair_judge(struct check_report *r, const struct pair_book *book, const size_t *nodes,
                size_t n);
/* Writes "940 Mbit/s" or "21 us". */
void pair_format(char *to, size_t size, enum pair_metric m, double value);
