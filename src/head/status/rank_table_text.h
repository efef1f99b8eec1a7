/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank table text: pieces of text shared by the table and the messages about ranks
 */
#pragma once

#include <stddef.h>

#include "head/status/rank_table.h"

/* Writes "in barrier `x`" or "for `x` and 3 more". */
void rank_table_what_for(const struct node_status_wait *w, char *to, size_t size);

/* Returns "rank 3", "ranks 0-2", "role infer, rank 3" or "504 ranks", malloc'ed. */
char *rank_ranks_text(const struct rank_table *t, const struct intlist *ranks);
/* Returns the hosts of the ranks, "gpu[001-002]", malloc'ed, and how many they are; @ret_n may be
 * NULL. */
char *rank_hosts_text(const struct rank_table *t, const struct intlist *ranks, size_t *ret_n);
/* Appends the ranks chosen by the filter; NULL = all. */
void rank_table_gather(const struct rank_table *t, rank_filter filter, struct intlist *to);

/* Compares what the ranks wait for; 0 = the same. */
int rank_compare_waits(const struct rank_row *a, const struct rank_row *b);
