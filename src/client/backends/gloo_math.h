/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gloo_math: what a reduction does with two arrays
 *
 * Integers add and multiply as unsigned ones, which wrap around without being undefined; bfloat16,
 * which Gloo does not know, goes through float.
 */
#pragma once

#include <hnlaunch/comm.h>

/* c[i] = a[i] op b[i]; @c may be @a or @b. */
using GlooReduce = void (*)(void *c, const void *a, const void *b, size_t n);

/* HN_AVG adds: gloo_finish() divides. Throws std::invalid_argument. */
GlooReduce gloo_reduction(hn_dtype type, hn_op op);

/* What is left to do when @ranks arrays have become one. */
void gloo_finish(hn_dtype type, hn_op op, void *array, size_t n, int ranks);
