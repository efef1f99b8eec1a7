/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for keys: GET, WAIT and the JOINs to them.
 *
 * A group of waits has a link per key; a link hangs in a list of the key's entry while the key is
 * missing. A group ends when the last link was taken off: as in PyTorch's store, a key counts as
 * seen even if it goes away again while the others come.
 *
 * As a rule a group is a single wait. A wait for a long list of keys (keys_id) joins an older group
 * with the same list if a group of its own would be the same: the same keys are missing, and no
 * other group is behind the older group in any list. So a list of keys for which all nodes of a job
 * wait costs a single list of links, and a key that comes is a single step for all.
 *
 * An item of a queue wakes the first wait in the list alone; a group of several waits is split
 * then, and the first wait keeps the places of the group.
 */
#include <stdlib.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

/* A key of a group. A link that is not hanging belongs to a key that has been there since. */
struct wait_link {
        struct wait_group *group;
        struct store_entry *entry;
        struct wait_link *prev, *next;
        bool hanging; /* in a list of the entry */
};

struct wait {
        struct pending_request pending;
        struct wait_group *group;
        struct wait *prev, *next;
        bool joins_over; /* a newcomer would not wait for the same keys any more */
        uint32_t joins;  /* the newcomers until then */
};

struct wait_group {
        uint8_t op;
        bool by_item;       /* a key was there as a queue only */
        struct wait *waits; /* in order of arrival */
        uint64_t keys_id;   /* by which newcomers find the group; 0 = not */
        uint64_t same_at;   /* table.presence when a newcomer's group was the same */
        UT_hash_handle hh;
        uint32_t missing, n; /* links that hang, and all */
        struct wait_link links[];
};

/* GET waits for values only: an item of a queue must not wake a GET. */
static struct wait_link **list_for(const struct wait_group *g, struct store_entry *e)
{
        return g->op == STORE_GET ? &e->gets : &e->waits;
}

static bool has_key_for(const struct wait_group *g, const struct store_entry *e)
{
        return g->op == STORE_GET ? e->present : entry_has_any(e);
}

static bool is_queue_only(const struct store_entry *e)
{
        return !e->present && e->queue;
}

/* --- groups ----------------------------------------------------------------------------------- */

static void take_link_off(struct wait_link *l)
{
        struct wait_link **list = list_for(l->group, l->entry);

        DL_DELETE(*list, l);
        l->hanging = false;
        l->group->missing--;
}

static void hang_missing_links(struct store *s, struct wait_group *g)
{
        for (uint32_t i = 0; i < g->n; i++) {
                struct wait_link *l = &g->links[i];
                struct wait_link **list = list_for(g, l->entry);

                g->by_item |= is_queue_only(l->entry);
                if (has_key_for(g, l->entry))
                        continue;
                DL_APPEND(*list, l);
                l->hanging = true;
                g->missing++;
        }
        /* Older groups are no longer the last in their lists, so the new number ends their same_at.
         * For this group the number stands until another key comes, goes or is waited for. */
        g->same_at = ++s->table.presence;
}

/* Newcomers do not find the group any more. */
static void close_wait_group(struct store *s, struct wait_group *g)
{
        if (g->keys_id)
                HASH_DEL(s->groups, g);
        g->keys_id = 0;
}

static size_t wait_group_size(uint32_t n)
{
        return sizeof(struct wait_group) + n * sizeof(struct wait_link);
}

/* Also for a group half made. */
static void destroy_wait_group(struct store *s, struct wait_group *g)
{
        close_wait_group(s, g);
        for (uint32_t i = 0; i < g->n; i++) {
                struct wait_link *l = &g->links[i];

                /* The links behind the one without memory are zero. */
                if (!l->entry)
                        continue;
                if (l->hanging)
                        take_link_off(l);
                l->entry->refs--;
                entry_release(&s->table, l->entry);
        }
        quota_free(&s->table.quota, g, wait_group_size(g->n));
}

/* Makes the group of all waits for the same keys. Keys without a value get an entry, which the
 * group holds. NULL: no room. */
static struct wait_group *create_wait_group(struct store *s, uint8_t op, const struct bytes *keys,
                                            uint32_t n)
{
        struct wait_group *g = quota_alloc(&s->table.quota, wait_group_size(n));

        if (!g)
                return NULL;
        g->op = op;
        g->n = n;
        for (uint32_t i = 0; i < n; i++) {
                struct wait_link *l = &g->links[i];

                l->group = g;
                l->entry = entry_make(&s->table, keys[i]);
                if (!l->entry) {
                        destroy_wait_group(s, g);
                        return NULL;
                }
                l->entry->refs++;
        }
        return g;
}

/* Would a newcomer's group be the same, in the same place of every list? */
static bool same_for_newcomer(const struct store *s, struct wait_group *g)
{
        bool by_item = false;

        if (g->same_at == s->table.presence)
                return true;
        for (uint32_t i = 0; i < g->n; i++) {
                const struct wait_link *l = &g->links[i];

                by_item |= is_queue_only(l->entry);
                if (l->hanging == has_key_for(g, l->entry))
                        return false; /* a key came or went since, without this link */
                if (l->hanging && l->next && l->next->group != g)
                        return false; /* another group would be served before the newcomer */
        }
        if (by_item != g->by_item)
                return false;
        g->same_at = s->table.presence;
        return true;
}

/* Finds or makes the group of a newcomer, with hanging links; NULL = no memory. */
static struct wait_group *wait_group_for(struct store *s, const struct store_request *req)
{
        bool get = req->op == STORE_GET;
        struct wait_group *g = NULL;

        if (req->keys_id)
                HASH_FIND(hh, s->groups, &req->keys_id, sizeof(req->keys_id), g);
        if (g && same_for_newcomer(s, g))
                return g;
        if (g)
                close_wait_group(s, g);
        g = create_wait_group(s, req->op, get ? &req->key : req->keys, get ? 1 : req->n_keys);
        if (!g)
                return NULL;
        hang_missing_links(s, g);
        if (!req->keys_id)
                return g;
        g->keys_id = req->keys_id;
        HASH_ADD(hh, s->groups, keys_id, sizeof(g->keys_id), g);
        if (!g->hh.tbl)
                g->keys_id = 0; /* no memory for the table: the group serves this wait alone */
        return g;
}

/* --- waits ------------------------------------------------------------------------------------ */

static struct wait *create_wait(struct store *s, struct request_id id, struct wait_group *g)
{
        struct wait *w = quota_alloc(&s->table.quota, sizeof(*w));

        if (!w)
                return NULL;
        if (pending_add(&s->pending, &w->pending, id.owner, id.tag, PENDING_WAIT) < 0) {
                quota_free(&s->table.quota, w, sizeof(*w));
                return NULL;
        }
        w->group = g;
        DL_APPEND(g->waits, w); /* the first is the one woken by an item of a queue */
        return w;
}

void wait_drop(struct store *s, struct pending_request *p)
{
        struct wait *w = container_of(p, struct wait, pending);
        struct wait_group *g = w->group;

        DL_DELETE(g->waits, w);
        pending_remove(&s->pending, p);
        quota_free(&s->table.quota, w, sizeof(*w));
        if (!g->waits)
                destroy_wait_group(s, g);
}

static void answer_wait(struct store *s, struct wait *w, bool by_item)
{
        struct store_reply reply = { .status = STORE_OK, .number = w->joins };

        if (by_item)
                reply.number = -1; /* tells a relay that the answer is for a single client */
        if (w->group->op == STORE_GET)
                reply.value = entry_value(w->group->links[0].entry);
        store_answer(s, pending_id(&w->pending), &reply);
        wait_drop(s, &w->pending);
}

/* Are all keys there? A long list is looked at once, until a key comes or goes. */
static bool are_all_there(struct store *s, const struct store_request *req, bool *ret_by_item)
{
        bool by_item = false;

        if (req->keys_id && s->seen.keys_id == req->keys_id && s->seen.at == s->table.presence) {
                *ret_by_item = s->seen.by_item;
                return true;
        }
        for (uint32_t i = 0; i < req->n_keys; i++) {
                const struct store_entry *e = entry_find(&s->table, req->keys[i]);

                if (!entry_has_any(e))
                        return false;
                by_item |= !e->present;
        }
        s->seen.keys_id = req->keys_id;
        s->seen.at = s->table.presence;
        s->seen.by_item = *ret_by_item = by_item;
        return true;
}

/* Answers without memory in the most frequent case: the keys are there. */
static bool answered_at_once(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_reply reply = { .status = STORE_OK };
        const struct store_entry *e;
        bool by_item;

        if (req->op == STORE_GET) {
                /* A GET of a key with a queue only waits for a value. */
                e = entry_find(&s->table, req->key);
                if (!e || !e->present)
                        return false;
                reply.value = entry_value(e);
        } else {
                if (!are_all_there(s, req, &by_item))
                        return false;
                reply.number = by_item ? -1 : 0;
        }
        store_answer(s, id, &reply);
        return true;
}

void wait_request(struct store *s, struct request_id id, const struct store_request *req)
{
        struct wait_group *g;
        struct wait *w;

        if (answered_at_once(s, id, req))
                return;
        g = wait_group_for(s, req);
        w = g ? create_wait(s, id, g) : NULL;
        if (!w) {
                /* A new group goes again; an older group has waits. */
                if (g && !g->waits)
                        destroy_wait_group(s, g);
                store_refuse_nomem(s, id);
        } else if (s->first_failed >= 0) {
                /* Keys that are there are answered even after a failure; only a wait is refused. */
                wait_fail(s, &w->pending);
        }
}

/* A newcomer asks for all keys now. If a key seen by the wait is gone again, the wait's answer
 * would not be true for the newcomer: then no further JOIN counts. */
void wait_join(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        struct pending_request *p = pending_find(&s->pending, id.owner, id.tag);
        const struct wait_group *g;
        struct wait *w;

        if (!p || p->kind != PENDING_WAIT)
                return;
        w = container_of(p, struct wait, pending);
        g = w->group;
        for (uint32_t i = 0; i < g->n && !w->joins_over; i++)
                w->joins_over = !g->links[i].hanging && !has_key_for(g, g->links[i].entry);
        w->joins += !w->joins_over;
}

/* --- arriving keys ---------------------------------------------------------------------------- */

/* Takes off the link of a key that has come: the last one answers the waits of the group. */
static void complete_link(struct store *s, struct wait_link *l)
{
        struct wait_group *g = l->group;
        bool by_item = g->op == STORE_WAIT && g->by_item;
        struct wait *w, *next;

        take_link_off(l);
        if (g->missing > 0)
                return;
        /* The last answer frees the group. */
        DL_FOREACH_SAFE(g->waits, w, next)
        answer_wait(s, w, by_item);
}

void wait_wake(struct store *s, struct store_entry *e)
{
        while (e->gets)
                complete_link(s, e->gets);
        while (e->waits)
                complete_link(s, e->waits);
}

/* Gives the first wait of @g a separate group, in front of @g in all lists but that of @but. NULL =
 * no memory. */
static struct wait_group *split_first_wait(struct store *s, struct wait_group *g,
                                           const struct wait_link *but)
{
        struct wait_group *own = quota_alloc(&s->table.quota, wait_group_size(g->n));
        struct wait *first = g->waits;

        if (!own)
                return NULL;
        own->op = g->op;
        own->n = g->n;
        for (uint32_t i = 0; i < g->n; i++) {
                struct wait_link *l = &own->links[i], *at = &g->links[i];
                struct wait_link **list = list_for(g, at->entry);

                *l = (struct wait_link){ .group = own, .entry = at->entry };
                l->entry->refs++;
                if (!at->hanging || at == but)
                        continue;
                while (at != *list && at->prev->group == g) /* a key may be named twice */
                        at = at->prev;
                DL_PREPEND_ELEM(*list, at, l);
                l->hanging = true;
                own->missing++;
        }
        s->table.presence++;
        DL_DELETE(g->waits, first);
        DL_APPEND(own->waits, first);
        first->group = own;
        return own;
}

void wait_wake_one(struct store *s, struct store_entry *e)
{
        struct wait_link *l = e->waits;
        struct wait *first = l ? l->group->waits : NULL;

        if (!first)
                return;
        if (!first->next) {
                l->group->by_item = true;
                complete_link(s, l);
        } else if (l->group->missing == 1) {
                /* Only this key is missing: the first wait ends, and the link stays for the
                 * others. */
                answer_wait(s, first, true);
        } else if (split_first_wait(s, l->group, l)) {
                /* Further keys are missing: the first wait goes on alone, without the link of this
                 * key. */
                first->group->by_item = true;
        } else {
                store_refuse_nomem(s, pending_id(&first->pending));
                wait_drop(s, &first->pending);
        }
}

/* --- giving up -------------------------------------------------------------------------------- */

void wait_cancel(struct store *s, struct pending_request *p)
{
        struct wait *w = container_of(p, struct wait, pending);
        const struct wait_group *g = w->group;
        const struct store_entry *first = NULL;

        for (uint32_t i = 0; i < g->n && !first; i++) /* the first missing key, for the text */
                if (g->links[i].hanging)
                        first = g->links[i].entry;
        if (g->missing > 1)
                store_refuse(s, pending_id(&w->pending), STORE_TIMEOUT,
                             "%u keys, `%s` first, are not there", g->missing,
                             KEY_FORMAT(entry_key(first)));
        else
                store_refuse(s, pending_id(&w->pending), STORE_TIMEOUT, "key `%s` is not there",
                             KEY_FORMAT(entry_key(first)));
        wait_drop(s, &w->pending);
}

void wait_fail(struct store *s, struct pending_request *p)
{
        struct wait *w = container_of(p, struct wait, pending);

        store_answer_failure(s, pending_id(&w->pending), w->joins);
        wait_drop(s, &w->pending);
}
