/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both lists have an index of names (hosts_find()), so that each operation takes a time that grows
 * with the number of hosts and not with the product. A host that is named by both lists keeps the
 * attributes of the first.
 */
#include "head/hosts/host_sets.h"

#include <stdlib.h>

#include "base/memory.h"

/* Appends the hosts that only the other list has, in its order. */
static void add_missing(struct hosts *h, const struct hosts *other)
{
        for (size_t i = 0; i < other->n; i++)
                if (!hosts_find(h, other->v[i].name))
                        hosts_add_like(h, &other->v[i]);
}

void host_set_apply(struct hosts *h, enum host_set_op op, struct hosts *other)
{
        bool *keep;

        if (op == HOST_SET_UNION) {
                add_missing(h, other);
                return;
        }
        keep = xcalloc(h->n + 1, sizeof(*keep));
        for (size_t i = 0; i < h->n; i++)
                keep[i] = (hosts_find(other, h->v[i].name) != NULL) == (op == HOST_SET_COMMON);
        hosts_retain(h, keep);
        free(keep);
}
