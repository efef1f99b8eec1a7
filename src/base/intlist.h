/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intlist: a growing list of numbers (ranks, devices, slots), in the order given
 *
 * Owns the array. A zeroed struct is an empty list. Growing ends the process when memory runs out,
 * as in memory.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct intlist {
        int *v;
        size_t n;
};

void intlist_add(struct intlist *l, int v);
bool intlist_has(const struct intlist *l, int v);
/* Writes runs of consecutive numbers as ranges: "0-7,9", "" when empty. malloc'ed. */
char *intlist_fold(const struct intlist *l);
void intlist_finish(struct intlist *l); /* leaves an empty list; fits CLEANUP() */
