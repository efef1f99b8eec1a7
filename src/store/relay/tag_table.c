/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/tag_table.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/memory.h"

static void grow_tag_table(struct tag_table *t)
{
        uint32_t n = MAX(t->n * 2, 16U);

        t->v = xrealloc(t->v, n, sizeof(*t->v));
        for (uint32_t i = t->n; i < n; i++)
                t->v[i] = (struct tag){ .next_free = i + 1 < n ? i + 2 : 0 };
        t->first_free = t->n + 1;
        t->n = n;
}

uint32_t tag_table_take(struct tag_table *t, struct request *r)
{
        uint32_t tag;

        if (!t->first_free)
                grow_tag_table(t);
        tag = t->first_free;
        t->first_free = t->v[tag - 1].next_free;
        t->v[tag - 1].of = r;
        return tag;
}

struct request *tag_table_find(const struct tag_table *t, uint32_t tag)
{
        return tag && tag <= t->n ? t->v[tag - 1].of : NULL;
}

void tag_table_give_back(struct tag_table *t, uint32_t tag)
{
        t->v[tag - 1] = (struct tag){ .next_free = t->first_free };
        t->first_free = tag;
}

void tag_table_finish(struct tag_table *t)
{
        free(t->v);
        *t = (struct tag_table){ 0 };
}
