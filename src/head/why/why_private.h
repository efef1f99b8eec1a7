/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why private: findings about the ranks of one world, for why_worlds.c
 */
#pragma once

#include "base/buf.h"
#include "head/why/why.h"

/* As why_find(), for ranks of one world, or of a job without roles. */
void why_find_in_world(struct why_rank *ranks, size_t n, struct why_finding *ret);
/* Puts "rank 3 (gpu001, pid 7) sleeps in f; ranks 4,5 ..." for the outliers; with @does_not, "rank
 * 3 (gpu001, pid 7) does not: it sleeps in f". */
void why_put_outliers(const struct why_rank *ranks, size_t n, const struct intlist *outliers,
                      bool does_not, struct buf *to);
/* Whether the rank computes, or goes on. A rank that waits in a loop does not. */
bool why_computes(const struct why_rank *r);
