/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Member_index: finds the place of a rank in a list of members
 *
 * The list is in the order of the group and mostly ascends: then it is its own index. Otherwise the
 * places are sorted by rank.
 */
#pragma once

#include <stdint.h>

#include "store/engine/quota.h"

struct member_index {
        const uint32_t *members; /* borrowed; NULL = the ranks below @n themselves */
        uint32_t n;
        uint32_t *places; /* NULL = the list ascends */
};

/* The memory comes from @q; -ENOMEM. */
int member_index_init(struct member_index *x, const uint32_t *members, uint32_t n, struct quota *q);
void member_index_finish(struct member_index *x, struct quota *q);
/* Returns the first place of @rank, or -1. */
int64_t member_index_find(const struct member_index *x, int rank);
