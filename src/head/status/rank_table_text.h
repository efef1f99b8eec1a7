/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roster_text: the words of roster_print.c and roster_tell.c, for a row and for lists of ranks
 */
#pragma once

#include <stddef.h>

#include "head/status/rank_table.h"

struct roster_span {
        char text[32];
};

/* "120s", "10m" of round times, as people set them; else "2m03s", "12.3s". */
struct roster_span roster_span(uint64_t ms);

/* "in barrier `x`", "for `x` and 3 more". */
void roster_what_for(const struct roster_wait *w, char *to, size_t size);

/* The cells of a row; "" where there is nothing to say. */
const char *roster_alive_text(const struct roster_row *r);
void roster_store_text(const struct roster_row *r, char *to, size_t size);
void roster_seen_text(const struct roster_row *r, char *to, size_t size);
void roster_step_text(const struct roster_row *r, char *to, size_t size); /* "1840/5000 warm-up" */
void roster_now_text(const struct roster_row *r, char *to, size_t size);

/* "rank 3", "ranks 0-2", "504 ranks". malloc'ed. */
char *roster_ranks_text(const struct intlist *ranks);
/* Appends the ranks that the filter takes; NULL = all. */
void roster_gather(const struct roster_table *t, roster_filter filter, struct intlist *to);
