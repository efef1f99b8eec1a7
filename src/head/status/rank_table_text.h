/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster_text: the words of rank_table_print.c and rank_table_messages.c, for a row and for lists
 * of ranks
 */
#pragma once

#include <stddef.h>

#include "head/status/rank_table.h"

struct rank_span {
        char text[32];
};

/* "120s", "10m" of round times, as people set them; else "2m03s", "12.3s". */
struct rank_span rank_span(uint64_t ms);

/* "in barrier `x`", "for `x` and 3 more". */
void rank_table_what_for(const struct node_status_wait *w, char *to, size_t size);

/* The cells of a row; "" where there is nothing to say. */
const char *rank_alive_text(const struct rank_row *r);
void rank_store_text(const struct rank_row *r, char *to, size_t size);
void rank_seen_text(const struct rank_row *r, char *to, size_t size);
void rank_step_text(const struct rank_row *r, char *to, size_t size); /* "1840/5000 warm-up" */
void rank_now_text(const struct rank_row *r, char *to, size_t size);

/* "rank 3", "ranks 0-2", "504 ranks". malloc'ed. */
char *rank_ranks_text(const struct intlist *ranks);
/* Appends the ranks that the filter takes; NULL = all. */
void rank_table_gather(const struct rank_table *t, rank_filter filter, struct intlist *to);
