/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for keys. A wait has one link per key; a link hangs in the list of its slot while the key
 * is missing. When the last link was taken off, the keys are looked at once more, because one of
 * them may have been deleted while the others came.
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
        uint32_t missing, n;
        struct link links[];
};

static struct request_id id_of(const struct wait *w)
{
        return (struct request_id){ w->parked.owner, w->parked.tag };
}

static void unhang(struct link *l)
{
        DL_DELETE(l->slot->links, l);
        l->hanging = false;
        l->wait->missing--;
}

static void hang_missing(struct wait *w)
{
        for (uint32_t i = 0; i < w->n; i++) {
                struct link *l = &w->links[i];

                if (l->slot->present || l->hanging)
                        continue;
                DL_APPEND(l->slot->links, l);
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
                store_slot_release(s, l->slot);
        }
        if (w->parked.home)
                parking_remove(&s->parking, &w->parked);
        free(w);
}

static void answer_present(struct store *s, const struct wait *w)
{
        struct store_reply reply = { .status = STORE_OK };

        if (w->op == STORE_GET)
                reply.value = (struct bytes){ w->links[0].slot->value, w->links[0].slot->len };
        store_answer(s, id_of(w), &reply);
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
                l->slot = store_slot_make(s, keys[i]);
                if (!l->slot) {
                        wait_free(s, w);
                        return NULL;
                }
                l->slot->refs++;
        }
        return w;
}

void wait_request(struct store *s, struct request_id id, const struct store_request *req)
{
        bool get = req->op == STORE_GET;
        struct wait *w =
                wait_make(s, id, req->op, get ? &req->key : req->keys, get ? 1 : req->n_keys);

        if (!w) {
                store_refuse(s, id, STORE_NOMEM, "the store is out of memory");
                return;
        }
        hang_missing(w);
        if (w->missing == 0) {
                answer_present(s, w);
                wait_free(s, w);
        } else if (parking_add(&s->parking, &w->parked) < 0) {
                wait_free(s, w);
                store_refuse(s, id, STORE_NOMEM, "the store is out of memory");
        } else if (s->first_failed >= 0) {
                wait_fail(s, &w->parked);
        }
}

void wait_wake(struct store *s, struct slot *slot)
{
        while (slot->links) {
                struct wait *w = slot->links->wait;

                unhang(slot->links);
                if (w->missing == 0)
                        hang_missing(w);
                if (w->missing > 0)
                        continue;
                answer_present(s, w);
                wait_free(s, w);
        }
}

void wait_cancel(struct store *s, struct parked *p)
{
        struct wait *w = container_of(p, struct wait, parked);
        const struct slot *first = NULL;

        for (uint32_t i = 0; i < w->n && !first; i++)
                if (w->links[i].hanging)
                        first = w->links[i].slot;
        if (w->missing > 1)
                store_refuse(s, id_of(w), STORE_TIMEOUT, "%u keys, `%.*s` first, are not there",
                             w->missing, (int)first->key_len, first->key);
        else
                store_refuse(s, id_of(w), STORE_TIMEOUT, "key `%.*s` is not there",
                             first ? (int)first->key_len : 0, first ? first->key : "");
        wait_free(s, w);
}

void wait_fail(struct store *s, struct parked *p)
{
        struct wait *w = container_of(p, struct wait, parked);
        uint32_t rank = (uint32_t)s->first_failed;
        struct store_reply reply = {
                .status = STORE_PEER, .text = bytes_of(s->failure), .ranks = &rank, .n_ranks = 1
        };

        store_answer(s, id_of(w), &reply);
        wait_free(s, w);
}

void wait_drop(struct store *s, struct parked *p)
{
        wait_free(s, container_of(p, struct wait, parked));
}
