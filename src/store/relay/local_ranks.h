/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local_ranks: the ranks seen at a relay, which are expected to come again
 *
 * A collective is held for a moment until these ranks have arrived (request_hold.c). A rank listed
 * here wrongly costs time, a rank that is missing costs one message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct local_ranks {
        struct local_rank *all; /* by number */
        uint32_t n;
};

void local_ranks_add(struct local_ranks *l, uint32_t rank); /* again is fine */
void local_ranks_remove(struct local_ranks *l, uint32_t rank);
bool local_ranks_has(const struct local_ranks *l, uint32_t rank);
/* Removes the ranks for which @keep returns false. */
void local_ranks_filter(struct local_ranks *l, bool (*keep)(const void *ctx, uint32_t rank),
                        const void *ctx);
void local_ranks_finish(struct local_ranks *l);
