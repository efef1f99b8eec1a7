/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/local_ranks.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/macros.h"
#include "base/strv.h"

struct local {
        uint32_t rank;
        UT_hash_handle hh;
};

static struct local *find(const struct locals *l, uint32_t rank)
{
        struct local *one;

        HASH_FIND(hh, l->all, &rank, sizeof(rank), one);
        return one;
}

static void drop(struct locals *l, struct local *one)
{
        HASH_DEL(l->all, one);
        free(one);
}

void locals_add(struct locals *l, uint32_t rank)
{
        struct local *one;

        if (find(l, rank))
                return;
        one = xcalloc(1, sizeof(*one));
        one->rank = rank;
        HASH_ADD(hh, l->all, rank, sizeof(one->rank), one);
}

void locals_remove(struct locals *l, uint32_t rank)
{
        struct local *one = find(l, rank);

        if (one)
                drop(l, one);
}

bool locals_has(const struct locals *l, uint32_t rank)
{
        return find(l, rank);
}

uint32_t locals_count(const struct locals *l)
{
        return HASH_COUNT(l->all);
}

void locals_sift(struct locals *l, bool (*come)(const void *ctx, uint32_t rank), const void *ctx)
{
        struct local *one, *next;

        HASH_ITER(hh, l->all, one, next)
        {
                if (!come(ctx, one->rank))
                        drop(l, one);
        }
}

void locals_finish(struct locals *l)
{
        struct local *one, *next;

        HASH_ITER(hh, l->all, one, next)
        drop(l, one);
}
