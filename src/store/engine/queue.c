/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues. One lives beside the value of its key and exists while it has items.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

struct item {
        struct item *prev, *next;
        size_t len;
        char bytes[];
};

static struct item *item_make(struct bytes value)
{
        struct item *item = malloc(sizeof(*item) + value.len);

        if (!item)
                return NULL;
        item->len = value.len;
        if (value.len)
                memcpy(item->bytes, value.p, value.len);
        return item;
}

void queue_push(struct store *s, struct request_id id, const struct store_request *req)
{
        struct item *item = item_make(req->value);
        struct slot *slot = item ? slot_make(s, req->key) : NULL;

        if (!slot) {
                free(item);
                store_refuse_nomem(s, id);
                return;
        }
        DL_APPEND(slot->queue, item);
        slot->n_items++;
        s->presence++;
        wait_wake_one(s, slot);
        store_answer_number(s, id, (int64_t)slot->n_items);
}

static void drop_first(struct slot *slot)
{
        struct item *first = slot->queue;

        DL_DELETE(slot->queue, first);
        slot->n_items--;
        free(first);
}

void queue_pop(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_find(s, req->key);
        struct store_reply reply = { .status = STORE_OK };

        if (!slot || !slot->queue) {
                store_answer(s, id, &reply);
                return;
        }
        reply.number = (int64_t)slot->n_items;
        reply.value = (struct bytes){ slot->queue->bytes, slot->queue->len };
        store_answer(s, id, &reply);
        drop_first(slot);
        s->presence += !slot->queue;
        slot_release(s, slot);
}

void queue_len(struct store *s, struct request_id id, const struct store_request *req)
{
        const struct slot *slot = slot_find(s, req->key);

        store_answer_number(s, id, slot ? (int64_t)slot->n_items : 0);
}

void queue_free(struct slot *slot)
{
        while (slot->queue)
                drop_first(slot);
}
