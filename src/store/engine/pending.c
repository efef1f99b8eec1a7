/* SPDX-License-Identifier: Apache-2.0 */
#include "store/engine/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

struct parked_owner {
        uint64_t id;
        struct parked *list;
        UT_hash_handle hh;
};

enum { NAME_LEN = 2 * sizeof(uint64_t) };
_Static_assert(offsetof(struct parked, tag) == offsetof(struct parked, owner) + sizeof(uint64_t),
               "owner and tag are hashed as one");

static struct parked_owner *owner_find(const struct parking *k, uint64_t id)
{
        struct parked_owner *o;

        HASH_FIND(hh, k->owners, &id, sizeof(id), o);
        return o;
}

static struct parked_owner *owner_make(struct parking *k, uint64_t id)
{
        struct parked_owner *o = calloc(1, sizeof(*o));

        if (!o)
                return NULL;
        o->id = id;
        HASH_ADD(hh, k->owners, id, sizeof(o->id), o);
        if (!o->hh.tbl) {
                free(o);
                return NULL;
        }
        return o;
}

static void owner_release(struct parking *k, struct parked_owner *o)
{
        if (o->list)
                return;
        HASH_DEL(k->owners, o);
        free(o);
}

int parking_add(struct parking *k, struct parked *p)
{
        struct parked_owner *o = owner_find(k, p->owner);

        if (!o)
                o = owner_make(k, p->owner);
        if (!o)
                return -ENOMEM;
        HASH_ADD(hh, k->all, owner, NAME_LEN, p);
        if (!p->hh.tbl) {
                owner_release(k, o);
                return -ENOMEM;
        }
        DL_PREPEND(o->list, p);
        p->home = o;
        return 0;
}

void parking_remove(struct parking *k, struct parked *p)
{
        HASH_DEL(k->all, p);
        DL_DELETE(p->home->list, p);
        owner_release(k, p->home);
}

struct parked *parking_find(const struct parking *k, uint64_t owner, uint32_t tag)
{
        const uint64_t name[] = { owner, tag };
        struct parked *p;

        HASH_FIND(hh, k->all, name, NAME_LEN, p);
        return p;
}

struct parked *parking_first(const struct parking *k, uint64_t owner)
{
        struct parked_owner *o = owner_find(k, owner);

        return o ? o->list : NULL;
}

struct parked *parking_any(const struct parking *k)
{
        return k->all;
}

size_t parking_count(const struct parking *k)
{
        return HASH_COUNT(k->all);
}

void parking_each(struct parking *k, enum parked_kind kind, void (*fn)(void *ctx, struct parked *p),
                  void *ctx)
{
        struct parked *p, *next;

        HASH_ITER(hh, k->all, p, next)
        {
                if (p->kind == kind)
                        fn(ctx, p);
        }
}
