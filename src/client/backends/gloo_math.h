/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gloo_math: the arithmetic of reductions
 *
 * Integers are added and multiplied as unsigned, which wraps around without being undefined;
 * bfloat16, unknown to Gloo, goes through float.
 */
#pragma once

#include <hnlaunch/comm.h>

/* c[i] = a[i] op b[i]; @c may be @a or @b. */
using GlooReduce = void (*)(void *c, const void *a, const void *b, size_t n);

/* HN_AVG adds: gloo_finish() divides. Throws std::invalid_argument. */
GlooReduce gloo_reduction(hn_dtype type, hn_op op);

/* Finishes the sum of @ranks arrays: divides for HN_AVG. */
void gloo_finish(hn_dtype type, hn_op op, void *array, size_t n, int ranks);
