/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push slow: nodes that still get files when all others have theirs
 *
 * Measures the rate of each, warns of a node that will take long, and decides whether a spare host
 * takes its place. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct job_push;
struct push_slow;

struct push_slow *push_slow_create(const struct job_push *p);
void push_slow_free(struct push_slow *w);

/* A push begins. */
void push_slow_begin(struct push_slow *w);
/* Returns a node whose place a spare host is to take, for the reason in @why; -1: none. Ten times
 * a second. */
int push_slow_find(struct push_slow *w, char *why, size_t size);
