/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no field for the capacity: the array grows whenever the number of elements is a power
 * of two, so the number tells the capacity.
 */
#include "base/intlist.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"

void intlist_add(struct intlist *l, int v)
{
        if (!(l->n & (l->n - 1)))
                l->v = xrealloc(l->v, l->n ? l->n * 2 : 1, sizeof(*l->v));
        l->v[l->n++] = v;
}

bool intlist_has(const struct intlist *l, int v)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->v[i] == v)
                        return true;
        return false;
}

void intlist_finish(struct intlist *l)
{
        free(l->v);
        *l = (struct intlist){ 0 };
}

char *intlist_fold(const struct intlist *l)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < l->n;) {
                size_t k = i;

                while (k + 1 < l->n && l->v[k + 1] == l->v[k] + 1)
                        k++;
                buf_printf(&b, k == i ? "%s%d" : "%s%d-%d", i ? "," : "", l->v[i], l->v[k]);
                i = k + 1;
        }
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}
