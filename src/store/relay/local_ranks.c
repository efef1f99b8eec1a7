/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/local_ranks.h"

#include <stdlib.h>
#include <uthash.h>

#include "base/macros.h"
#include "base/memory.h"

struct local_rank {
        uint32_t rank;
        UT_hash_handle hh;
};

static struct local_rank *find_local_rank(const struct local_ranks *l, uint32_t rank)
{
        struct local_rank *lr;

        HASH_FIND(hh, l->all, &rank, sizeof(rank), lr);
        return lr;
}

static void drop_local_rank(struct local_ranks *l, struct local_rank *lr)
{
        HASH_DEL(l->all, lr);
        l->n--;
        free(lr);
}

void local_ranks_add(struct local_ranks *l, uint32_t rank)
{
        struct local_rank *lr;

        if (find_local_rank(l, rank))
                return;
        lr = xcalloc(1, sizeof(*lr));
        lr->rank = rank;
        HASH_ADD(hh, l->all, rank, sizeof(lr->rank), lr);
        l->n++;
}

void local_ranks_remove(struct local_ranks *l, uint32_t rank)
{
        struct local_rank *lr = find_local_rank(l, rank);

        if (lr)
                drop_local_rank(l, lr);
}

bool local_ranks_has(const struct local_ranks *l, uint32_t rank)
{
        return find_local_rank(l, rank);
}

void local_ranks_filter(struct local_ranks *l, bool (*keep)(const void *ctx, uint32_t rank),
                        const void *ctx)
{
        struct local_rank *lr, *next;

        HASH_ITER(hh, l->all, lr, next)
        {
                if (!keep(ctx, lr->rank))
                        drop_local_rank(l, lr);
        }
}

void local_ranks_finish(struct local_ranks *l)
{
        struct local_rank *lr, *next;

        HASH_ITER(hh, l->all, lr, next)
        drop_local_rank(l, lr);
}
