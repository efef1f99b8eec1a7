/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for keys. A group of waits has one link per key; a link hangs in a list of its slot while
 * the key is missing. A group ends when the last link was taken off: as in PyTorch's store, a key
 * that goes away again while the others come counts as seen.
 *
 * As a rule a group is one wait. Who waits for a long list of keys that others wait for already
 * (keys_id) joins their group, if its own would be the same: the same keys are missing, and nobody
 * is behind the group in any line. So what all nodes of a job wait for costs one list of links, and
 * a key that comes is one step for all of them.
 */
#include <stdlib.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

struct link {
        struct group *group;
        struct slot *slot;
        struct link *prev, *next;
        bool hanging;
};

struct wait {
        struct parked parked;
        struct group *group;
        struct wait *prev, *next;
        bool joins_over; /* a newcomer would not wait for the same any more */
        uint32_t joins;
};

struct group {
        uint8_t op;
        bool by_item;       /* one of its keys was there as a queue only */
        struct wait *waits; /* first come, first */
        uint64_t keys_id;   /* newcomers find it; 0 = they do not */
        uint64_t same_at;   /* s->presence when a newcomer's would have been the same */
        UT_hash_handle hh;
        uint32_t missing, n;
        struct link links[];
};

static struct request_id id_of(const struct wait *w)
{
        return (struct request_id){ w->parked.owner, (uint32_t)w->parked.tag };
}

static struct link **list_of(const struct group *g, struct slot *slot)
{
        return g->op == STORE_GET ? &slot->gets : &slot->waits;
}

static bool satisfied(const struct group *g, const struct slot *slot)
{
        return g->op == STORE_GET ? slot->present : slot_has_any(slot);
}

static bool is_queue_only(const struct slot *slot)
{
        return !slot->present && slot->queue;
}

/* --- groups ----------------------------------------------------------------------------------- */

static void unhang(struct link *l)
{
        struct link **list = list_of(l->group, l->slot);

        DL_DELETE(*list, l);
        l->hanging = false;
        l->group->missing--;
}

static void hang_missing(struct store *s, struct group *g)
{
        for (uint32_t i = 0; i < g->n; i++) {
                struct link *l = &g->links[i];
                struct link **list = list_of(g, l->slot);

                g->by_item |= is_queue_only(l->slot);
                if (satisfied(g, l->slot))
                        continue;
                DL_APPEND(*list, l);
                l->hanging = true;
                g->missing++;
        }
        g->same_at = ++s->presence;
}

/* Newcomers make a group of their own. */
static void group_close(struct store *s, struct group *g)
{
        if (g->keys_id)
                HASH_DEL(s->groups, g);
        g->keys_id = 0;
}

/* It may be half made. */
static void group_free(struct store *s, struct group *g)
{
        group_close(s, g);
        for (uint32_t i = 0; i < g->n; i++) {
                struct link *l = &g->links[i];

                if (!l->slot)
                        continue;
                if (l->hanging)
                        unhang(l);
                l->slot->refs--;
                slot_release(s, l->slot);
        }
        free(g);
}

static struct group *group_make(struct store *s, uint8_t op, const struct bytes *keys, uint32_t n)
{
        struct group *g = calloc(1, sizeof(*g) + n * sizeof(g->links[0]));

        if (!g)
                return NULL;
        g->op = op;
        g->n = n;
        for (uint32_t i = 0; i < n; i++) {
                struct link *l = &g->links[i];

                l->group = g;
                l->slot = slot_make(s, keys[i]);
                if (!l->slot) {
                        group_free(s, g);
                        return NULL;
                }
                l->slot->refs++;
        }
        return g;
}

/* Would a newcomer's group be the same, and in the same place of every line? */
static bool is_same(const struct store *s, struct group *g)
{
        bool by_item = false;

        if (g->same_at == s->presence)
                return true;
        for (uint32_t i = 0; i < g->n; i++) {
                const struct link *l = &g->links[i];

                by_item |= is_queue_only(l->slot);
                if (l->hanging == satisfied(g, l->slot))
                        return false;
                if (l->hanging && l->next && l->next->group != g)
                        return false;
        }
        if (by_item != g->by_item)
                return false;
        g->same_at = s->presence;
        return true;
}

static struct group *group_find(struct store *s, uint64_t keys_id)
{
        struct group *g;

        HASH_FIND(hh, s->groups, &keys_id, sizeof(keys_id), g);
        if (!g || is_same(s, g))
                return g;
        group_close(s, g);
        return NULL;
}

/* The group of a newcomer, hanging; NULL = no memory. */
static struct group *group_of(struct store *s, const struct store_request *req)
{
        bool get = req->op == STORE_GET;
        struct group *g = req->keys_id ? group_find(s, req->keys_id) : NULL;

        if (g)
                return g;
        g = group_make(s, req->op, get ? &req->key : req->keys, get ? 1 : req->n_keys);
        if (!g)
                return NULL;
        hang_missing(s, g);
        if (!req->keys_id)
                return g;
        g->keys_id = req->keys_id;
        HASH_ADD(hh, s->groups, keys_id, sizeof(g->keys_id), g);
        if (!g->hh.tbl)
                g->keys_id = 0;
        return g;
}

/* --- waits ------------------------------------------------------------------------------------ */

static struct wait *wait_make(struct store *s, struct request_id id, struct group *g)
{
        struct wait *w = calloc(1, sizeof(*w));

        if (!w)
                return NULL;
        w->parked = (struct parked){ .owner = id.owner, .tag = id.tag, .kind = PARKED_WAIT };
        if (parking_add(&s->parking, &w->parked) < 0) {
                free(w);
                return NULL;
        }
        w->group = g;
        DL_APPEND(g->waits, w);
        return w;
}

static void wait_free(struct store *s, struct wait *w)
{
        struct group *g = w->group;

        DL_DELETE(g->waits, w);
        parking_remove(&s->parking, &w->parked);
        free(w);
        if (!g->waits)
                group_free(s, g);
}

static void end_well(struct store *s, struct wait *w, bool by_item)
{
        struct store_reply reply = { .status = STORE_OK, .number = w->joins };

        if (by_item)
                reply.number = -1;
        if (w->group->op == STORE_GET)
                reply.value = slot_value(w->group->links[0].slot);
        store_answer(s, id_of(w), &reply);
        wait_free(s, w);
}

static void end_all(struct store *s, struct group *g)
{
        bool by_item = g->op == STORE_WAIT && g->by_item;
        struct wait *w, *next;

        DL_FOREACH_SAFE(g->waits, w, next)
        end_well(s, w, by_item);
}

/* Are all keys there? Of a long list this is looked at once, as long as no key comes or goes. */
static bool all_there(struct store *s, const struct store_request *req, bool *ret_by_item)
{
        bool by_item = false;

        if (req->keys_id && s->there.keys_id == req->keys_id && s->there.at == s->presence) {
                *ret_by_item = s->there.by_item;
                return true;
        }
        for (uint32_t i = 0; i < req->n_keys; i++) {
                const struct slot *slot = slot_find(s, req->keys[i]);

                if (!slot_has_any(slot))
                        return false;
                by_item |= !slot->present;
        }
        s->there.keys_id = req->keys_id;
        s->there.at = s->presence;
        s->there.by_item = *ret_by_item = by_item;
        return true;
}

/* The most frequent question, for what is there, needs no memory. */
static bool answered_at_once(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_reply reply = { .status = STORE_OK };
        const struct slot *slot;
        bool by_item;

        if (req->op == STORE_GET) {
                slot = slot_find(s, req->key);
                if (!slot || !slot->present)
                        return false;
                reply.value = slot_value(slot);
        } else {
                if (!all_there(s, req, &by_item))
                        return false;
                reply.number = by_item ? -1 : 0;
        }
        store_answer(s, id, &reply);
        return true;
}

void wait_request(struct store *s, struct request_id id, const struct store_request *req)
{
        struct group *g;
        struct wait *w;

        if (answered_at_once(s, id, req))
                return;
        g = group_of(s, req);
        w = g ? wait_make(s, id, g) : NULL;
        if (!w) {
                if (g && !g->waits)
                        group_free(s, g);
                store_refuse_nomem(s, id);
        } else if (s->first_failed >= 0) {
                wait_fail(s, &w->parked);
        }
}

/* Whoever joins asks for all the keys now. If one that the wait has seen is gone again, the wait's
 * end would tell a newcomer of a key that was not there in its time. */
void wait_join(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        struct parked *p = parking_find(&s->parking, id.owner, id.tag);
        const struct group *g;
        struct wait *w;

        if (!p || p->kind != PARKED_WAIT)
                return;
        w = container_of(p, struct wait, parked);
        g = w->group;
        for (uint32_t i = 0; i < g->n && !w->joins_over; i++)
                w->joins_over = !g->links[i].hanging && !satisfied(g, g->links[i].slot);
        w->joins += !w->joins_over;
}

/* --- what comes ------------------------------------------------------------------------------- */

static void take_off(struct store *s, struct link *l)
{
        struct group *g = l->group;

        unhang(l);
        if (g->missing == 0)
                end_all(s, g);
}

void wait_wake(struct store *s, struct slot *slot)
{
        while (slot->gets)
                take_off(s, slot->gets);
        while (slot->waits)
                take_off(s, slot->waits);
}

/* Hangs @l into the line before the links of @group, one of which is @at. */
static void hang_before(struct link *l, struct link *at)
{
        struct link **list = list_of(at->group, at->slot);
        const struct group *group = at->group;

        while (at != *list && at->prev->group == group)
                at = at->prev;
        DL_PREPEND_ELEM(*list, at, l);
        l->hanging = true;
        l->group->missing++;
}

/* A group for the first wait of @g, which is ahead of it in all its lines but that of @but. */
static struct group *split(struct store *s, struct group *g, const struct link *but)
{
        struct group *own = calloc(1, sizeof(*own) + g->n * sizeof(own->links[0]));
        struct wait *first = g->waits;

        if (!own)
                return NULL;
        own->op = g->op;
        own->n = g->n;
        for (uint32_t i = 0; i < g->n; i++) {
                own->links[i] = (struct link){ .group = own, .slot = g->links[i].slot };
                own->links[i].slot->refs++;
                if (g->links[i].hanging && &g->links[i] != but)
                        hang_before(&own->links[i], &g->links[i]);
        }
        s->presence++;
        DL_DELETE(g->waits, first);
        DL_APPEND(own->waits, first);
        first->group = own;
        return own;
}

/* An item is for the first wait of the group alone. */
static void item_for_first(struct store *s, struct link *l)
{
        struct wait *first = l->group->waits;

        if (l->group->missing == 1) {
                end_well(s, first, true);
                return;
        }
        if (split(s, l->group, l)) {
                first->group->by_item = true;
                return;
        }
        store_refuse_nomem(s, id_of(first));
        wait_free(s, first);
}

void wait_wake_one(struct store *s, struct slot *slot)
{
        struct link *l = slot->waits;

        if (l && l->group->waits->next) {
                item_for_first(s, l);
        } else if (l) {
                l->group->by_item = true;
                take_off(s, l);
        }
}

/* --- giving up -------------------------------------------------------------------------------- */

void wait_cancel(struct store *s, struct parked *p)
{
        struct wait *w = container_of(p, struct wait, parked);
        const struct group *g = w->group;
        const struct slot *first = NULL;

        for (uint32_t i = 0; i < g->n && !first; i++)
                if (g->links[i].hanging)
                        first = g->links[i].slot;
        if (g->missing > 1)
                store_refuse(s, id_of(w), STORE_TIMEOUT, "%u keys, `%s` first, are not there",
                             g->missing, KEY_TEXT_OF(slot_key(first)));
        else
                store_refuse(s, id_of(w), STORE_TIMEOUT, "key `%s` is not there",
                             KEY_TEXT_OF(slot_key(first)));
        wait_free(s, w);
}

void wait_fail(struct store *s, struct parked *p)
{
        struct wait *w = container_of(p, struct wait, parked);

        store_answer_failure(s, id_of(w), w->joins);
        wait_free(s, w);
}

void wait_drop(struct store *s, struct parked *p)
{
        wait_free(s, container_of(p, struct wait, parked));
}
