/* SPDX-License-Identifier: Apache-2.0 */
#include "store/parking.h"

#include <errno.h>
#include <stdlib.h>

/* A failed allocation must be an answer, not the end of the head. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

struct parked_owner {
        uint64_t id;
        struct parked *list;
        UT_hash_handle hh;
};

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

int parking_add(struct parking *k, struct parked *p)
{
        struct parked_owner *o = owner_find(k, p->owner);

        if (!o)
                o = owner_make(k, p->owner);
        if (!o)
                return -ENOMEM;
        DL_PREPEND(o->list, p);
        p->home = o;
        k->n++;
        return 0;
}

void parking_remove(struct parking *k, struct parked *p)
{
        struct parked_owner *o = p->home;

        DL_DELETE(o->list, p);
        k->n--;
        if (!o->list) {
                HASH_DEL(k->owners, o);
                free(o);
        }
}

struct parked *parking_find(const struct parking *k, uint64_t owner, uint32_t tag)
{
        struct parked_owner *o = owner_find(k, owner);
        struct parked *p = NULL;

        if (o)
                DL_SEARCH_SCALAR(o->list, p, tag, tag);
        return p;
}

struct parked *parking_first(const struct parking *k, uint64_t owner)
{
        struct parked_owner *o = owner_find(k, owner);

        return o ? o->list : NULL;
}

struct parked *parking_any(const struct parking *k)
{
        return k->owners ? k->owners->list : NULL;
}

void parking_each(struct parking *k, enum parked_kind kind, void (*fn)(void *ctx, struct parked *p),
                  void *ctx)
{
        struct parked_owner *o, *next_owner;
        struct parked *p, *next;

        HASH_ITER(hh, k->owners, o, next_owner)
        {
                /* The owner goes with its last request: take the successor before the call. */
                for (p = o->list; p; p = next) {
                        next = p->next;
                        if (p->kind == kind)
                                fn(ctx, p);
                }
        }
}
