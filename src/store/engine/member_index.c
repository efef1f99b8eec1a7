/* SPDX-License-Identifier: Apache-2.0 */
#include "store/engine/member_index.h"

#include <errno.h>

/* glibc's qsort_r() sorts equal ranks in any order: the place decides. */
static int compare_member_places(const void *a, const void *b, void *ctx)
{
        const uint32_t *members = ctx, *x = a, *y = b;

        if (members[*x] != members[*y])
                return members[*x] < members[*y] ? -1 : 1;
        return *x < *y ? -1 : 1;
}

int member_index_init(struct member_index *x, const uint32_t *members, uint32_t n, struct quota *q)
{
        uint32_t ascending = 1;

        *x = (struct member_index){ .members = members, .n = n };
        /* A list with a rank twice does not ascend, and is sorted below. */
        while (members && ascending < n && members[ascending - 1] < members[ascending])
                ascending++;
        if (!members || ascending >= n)
                return 0;
        x->places = quota_alloc(q, n * sizeof(*x->places));
        if (!x->places)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                x->places[i] = i;
        qsort_r(x->places, n, sizeof(*x->places), compare_member_places,
                (void *)(uintptr_t)members);
        return 0;
}

void member_index_finish(struct member_index *x, struct quota *q)
{
        quota_free(q, x->places, x->n * sizeof(*x->places));
        x->places = NULL;
}

static uint32_t place_of(const struct member_index *x, uint32_t at)
{
        return x->places ? x->places[at] : at;
}

int64_t member_index_find(const struct member_index *x, int rank)
{
        uint32_t low = 0, high = x->n;

        if (!x->members) /* the world: a place is a rank */
                return rank >= 0 && (uint32_t)rank < x->n ? rank : -1;
        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (x->members[place_of(x, mid)] < (uint32_t)rank)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (low < x->n && x->members[place_of(x, low)] == (uint32_t)rank)
                return place_of(x, low);
        return -1;
}
