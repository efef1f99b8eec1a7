/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are found by owner and tag for an answer or a cancellation, and by owner alone when a
 * client leaves: one hash table each, and a list per owner.
 */
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

int pending_add(struct pending_table *t, struct pending_request *p, uint64_t owner, uint32_t tag,
                enum pending_kind kind)
{
        struct pending_owner *o;

        p->owner = owner;
        p->tag = tag;
        p->kind = kind;
        HASH_ADD(hh, t->all, owner, NAME_LEN, p);
        if (!p->hh.tbl) /* HASH_NONFATAL_OOM: a failed insertion leaves hh.tbl NULL */
                return -ENOMEM;
        HASH_FIND(hh, t->owners, &owner, sizeof(owner), o);
        if (!o && (o = calloc(1, sizeof(*o)))) {
                o->id = owner;
                HASH_ADD(hh, t->owners, id, sizeof(o->id), o);
        }
        if (!o || !o->hh.tbl) {
                /* Only an owner made just now can be without a table, so no owner in use is
                 * freed. */
                free(o);
                HASH_DEL(t->all, p);
                return -ENOMEM;
        }
        DL_PREPEND(o->list, p);
        p->home = o;
        return 0;
}

void pending_remove(struct pending_table *t, struct pending_request *p)
{
        struct pending_owner *o = p->home;

        t->removed++;
        HASH_DEL(t->all, p);
        DL_DELETE(o->list, p);
        /* The last request of an owner takes the owner along: idle connections cost nothing. */
        if (o->list)
                return;
        HASH_DEL(t->owners, o);
        free(o);
}

struct pending_request *pending_find(const struct pending_table *t, uint64_t owner, uint32_t tag)
{
        /* Laid out as owner and tag in struct pending_request. */
        const uint64_t name[] = { owner, tag };
        struct pending_request *p;

        HASH_FIND(hh, t->all, name, NAME_LEN, p);
        return p;
}

struct pending_request *pending_first(const struct pending_table *t, uint64_t owner)
{
        struct pending_owner *o;

        HASH_FIND(hh, t->owners, &owner, sizeof(owner), o);
        return o ? o->list : NULL;
}
