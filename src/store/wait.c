/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for keys. A wait has one link per key; a link hangs in a list of its slot while the key is
 * missing. It ends when the last link was taken off: as in PyTorch's store, a key that goes away
 * again while the others come counts as seen.
 */
#include <stdlib.h>
#include <utlist.h>

#include "store/private.h"

struct link {
        struct wait *wait;
        struct slot *slot;
        struct link *prev, *next;
        bool hanging;
};

struct wait {
        struct parked parked;
        uint8_t op;
        bool by_item;    /* one of its keys was there as a queue only */
        bool joins_over; /* a newcomer would not wait for the same any more */
        uint32_t joins;
        uint32_t missing, n;
        struct link links[];
};

static struct request_id id_of(const struct wait *w)
{
        return (struct request_id){ w->parked.owner, (uint32_t)w->parked.tag };
}

static struct link **list_of(const struct wait *w, struct slot *slot)
{
        return w->op == STORE_GET ? &slot->gets : &slot->waits;
}

static bool satisfied(const struct wait *w, const struct slot *slot)
{
        return w->op == STORE_GET ? slot->present : slot_has_any(slot);
}

static void unhang(struct link *l)
{
        struct link **list = list_of(l->wait, l->slot);

        DL_DELETE(*list, l);
        l->hanging = false;
        l->wait->missing--;
}

static void hang_missing(struct wait *w)
{
        for (uint32_t i = 0; i < w->n; i++) {
                struct link *l = &w->links[i];
                struct link **list = list_of(w, l->slot);

                w->by_item |= !l->slot->present && l->slot->queue;
                if (satisfied(w, l->slot))
                        continue;
                DL_APPEND(*list, l);
                l->hanging = true;
                w->missing++;
        }
}

/* Frees the wait; it may be half made and not parked. */
static void wait_free(struct store *s, struct wait *w)
{
        for (uint32_t i = 0; i < w->n; i++) {
                struct link *l = &w->links[i];

                if (!l->slot)
                        continue;
                if (l->hanging)
                        unhang(l);
                l->slot->refs--;
                slot_release(s, l->slot);
        }
        if (w->parked.home)
                parking_remove(&s->parking, &w->parked);
        free(w);
}

static void end_well(struct store *s, struct wait *w)
{
        struct store_reply reply = { .status = STORE_OK, .number = w->joins };

        if (w->op == STORE_GET)
                reply.value = slot_value(w->links[0].slot);
        else if (w->by_item)
                reply.number = -1;
        store_answer(s, id_of(w), &reply);
        wait_free(s, w);
}

static struct wait *wait_make(struct store *s, struct request_id id, uint8_t op,
                              const struct bytes *keys, uint32_t n)
{
        struct wait *w = calloc(1, sizeof(*w) + n * sizeof(w->links[0]));

        if (!w)
                return NULL;
        w->parked = (struct parked){ .owner = id.owner, .tag = id.tag, .kind = PARKED_WAIT };
        w->op = op;
        w->n = n;
        for (uint32_t i = 0; i < n; i++) {
                struct link *l = &w->links[i];

                l->wait = w;
                l->slot = slot_make(s, keys[i]);
                if (!l->slot) {
                        wait_free(s, w);
                        return NULL;
                }
                l->slot->refs++;
        }
        return w;
}

/* The most frequent question, one key that is there, needs no memory. */
static bool answered_at_once(struct store *s, struct request_id id, uint8_t op, struct bytes key)
{
        const struct slot *slot = slot_find(s, key);
        struct store_reply reply = { .status = STORE_OK };

        if (op == STORE_GET ? !slot || !slot->present : !slot_has_any(slot))
                return false;
        if (op == STORE_GET)
                reply.value = slot_value(slot);
        else
                reply.number = slot->present ? 0 : -1;
        store_answer(s, id, &reply);
        return true;
}

void wait_request(struct store *s, struct request_id id, const struct store_request *req)
{
        bool get = req->op == STORE_GET;
        const struct bytes *keys = get ? &req->key : req->keys;
        uint32_t n = get ? 1 : req->n_keys;
        struct wait *w;

        if (n == 1 && answered_at_once(s, id, req->op, keys[0]))
                return;
        w = wait_make(s, id, req->op, keys, n);
        if (!w) {
                store_refuse_nomem(s, id);
                return;
        }
        hang_missing(w);
        if (w->missing == 0) {
                end_well(s, w);
        } else if (parking_add(&s->parking, &w->parked) < 0) {
                wait_free(s, w);
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
        struct wait *w;

        if (!p || p->kind != PARKED_WAIT)
                return;
        w = container_of(p, struct wait, parked);
        for (uint32_t i = 0; i < w->n && !w->joins_over; i++)
                w->joins_over = !w->links[i].hanging && !satisfied(w, w->links[i].slot);
        w->joins += !w->joins_over;
}

static void take_off(struct store *s, struct link *l, bool by_item)
{
        struct wait *w = l->wait;

        unhang(l);
        w->by_item |= by_item;
        if (w->missing == 0)
                end_well(s, w);
}

void wait_wake(struct store *s, struct slot *slot)
{
        while (slot->gets)
                take_off(s, slot->gets, false);
        while (slot->waits)
                take_off(s, slot->waits, false);
}

void wait_wake_one(struct store *s, struct slot *slot)
{
        if (slot->waits)
                take_off(s, slot->waits, true);
}

void wait_cancel(struct store *s, struct parked *p)
{
        struct wait *w = container_of(p, struct wait, parked);
        const struct slot *first = NULL;

        for (uint32_t i = 0; i < w->n && !first; i++)
                if (w->links[i].hanging)
                        first = w->links[i].slot;
        if (w->missing > 1)
                store_refuse(s, id_of(w), STORE_TIMEOUT, "%u keys, `%s` first, are not there",
                             w->missing, KEY_TEXT_OF(slot_key(first)));
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
