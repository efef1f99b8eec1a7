/* SPDX-License-Identifier: Apache-2.0 */
#include "store/engine/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

struct pending_owner {
        uint64_t id;
        struct pending_request *list;
        UT_hash_handle hh;
};

enum { NAME_LEN = 2 * sizeof(uint64_t) };
_Static_assert(offsetof(struct pending_request, tag) ==
                       offsetof(struct pending_request, owner) + sizeof(uint64_t),
               "owner and tag are hashed together");

static struct pending_owner *find_owner(const struct pending_table *t, uint64_t id)
{
        struct pending_owner *o;

        HASH_FIND(hh, t->owners, &id, sizeof(id), o);
        return o;
}

/* NULL = no memory. */
static struct pending_owner *find_or_make_owner(struct pending_table *t, uint64_t id)
{
        struct pending_owner *o = find_owner(t, id);

        if (o)
                return o;
        o = calloc(1, sizeof(*o));
        if (!o)
                return NULL;
        o->id = id;
        HASH_ADD(hh, t->owners, id, sizeof(o->id), o);
        if (!o->hh.tbl) {
                free(o);
                return NULL;
        }
        return o;
}

static void release_owner(struct pending_table *t, struct pending_owner *o)
{
        if (o->list)
                return;
        HASH_DEL(t->owners, o);
        free(o);
}

int pending_add(struct pending_table *t, struct pending_request *p)
{
        struct pending_owner *o = find_or_make_owner(t, p->owner);

        if (!o)
                return -ENOMEM;
        HASH_ADD(hh, t->all, owner, NAME_LEN, p);
        if (!p->hh.tbl) {
                release_owner(t, o);
                return -ENOMEM;
        }
        DL_PREPEND(o->list, p);
        p->home = o;
        return 0;
}

void pending_remove(struct pending_table *t, struct pending_request *p)
{
        HASH_DEL(t->all, p);
        DL_DELETE(p->home->list, p);
        release_owner(t, p->home);
}

struct pending_request *pending_find(const struct pending_table *t, uint64_t owner, uint32_t tag)
{
        const uint64_t name[] = { owner, tag };
        struct pending_request *p;

        HASH_FIND(hh, t->all, name, NAME_LEN, p);
        return p;
}

struct pending_request *pending_first(const struct pending_table *t, uint64_t owner)
{
        struct pending_owner *o = find_owner(t, owner);

        return o ? o->list : NULL;
}

struct pending_request *pending_any(const struct pending_table *t)
{
        return t->all;
}

size_t pending_count(const struct pending_table *t)
{
        return HASH_COUNT(t->all);
}

void pending_each(struct pending_table *t, enum pending_kind kind,
                  void (*fn)(void *ctx, struct pending_request *p), void *ctx)
{
        struct pending_request *p, *next;

        HASH_ITER(hh, t->all, p, next)
        {
                if (p->kind == kind)
                        fn(ctx, p);
        }
}
