/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts. Who waits for a number hangs at its key in ascending order, so that a write looks only at
 * those whom it wakes; as a rule all wait for the same number, and a newcomer goes to the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

struct count {
        struct parked parked;
        struct slot *slot;
        struct count *prev, *next;
        int64_t number;
};

static struct request_id id_of(const struct count *c)
{
        return (struct request_id){ c->parked.owner, (uint32_t)c->parked.tag };
}

static struct count *count_make(struct store *s, struct request_id id, struct slot *slot,
                                int64_t number)
{
        struct count *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->parked = (struct parked){ .owner = id.owner, .tag = id.tag, .kind = PARKED_COUNT };
        c->number = number;
        if (parking_add(&s->parking, &c->parked) < 0) {
                free(c);
                return NULL;
        }
        c->slot = slot;
        slot->refs++;
        return c;
}

/* It may not hang yet. */
static void count_free(struct store *s, struct count *c)
{
        if (c->prev)
                DL_DELETE(c->slot->counts, c);
        c->slot->refs--;
        slot_release(s, c->slot);
        parking_remove(&s->parking, &c->parked);
        free(c);
}

static void hang(struct count *c)
{
        struct count *after = c->slot->counts ? c->slot->counts->prev : NULL;

        while (after && after->number > c->number)
                after = after == c->slot->counts ? NULL : after->prev;
        if (after)
                DL_APPEND_ELEM(c->slot->counts, after, c);
        else
                DL_PREPEND(c->slot->counts, c);
}

void count_wake(struct store *s, struct slot *slot)
{
        int64_t n;

        if (!slot->counts || !slot_number(slot, &n))
                return;
        while (slot->counts && slot->counts->number <= n) {
                struct count *c = slot->counts;

                store_answer_number(s, id_of(c), n);
                count_free(s, c);
        }
}

void count_request(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_make(s, req->key);
        struct count *c = slot ? count_make(s, id, slot, req->number) : NULL;
        int64_t sum;

        if (!c) {
                if (slot)
                        slot_release(s, slot);
                store_refuse_nomem(s, id);
                return;
        }
        if (!slot_add(s, id, slot, MAX(req->total, 1), &sum)) {
                count_free(s, c);
                return;
        }
        if (sum < req->number && s->first_failed < 0) {
                hang(c);
                return;
        }
        if (sum < req->number)
                store_answer_failure(s, id, 0);
        else
                store_answer_number(s, id, sum);
        count_free(s, c);
}

void count_cancel(struct store *s, struct parked *p)
{
        struct count *c = container_of(p, struct count, parked);
        int64_t n;

        slot_number(c->slot, &n);
        store_refuse(s, id_of(c), STORE_TIMEOUT,
                     "the count `%s` is %" PRId64 ", %" PRId64 " are awaited",
                     KEY_TEXT_OF(slot_key(c->slot)), n, c->number);
        count_free(s, c);
}

void count_fail(struct store *s, struct parked *p)
{
        struct count *c = container_of(p, struct count, parked);

        store_answer_failure(s, id_of(c), 0);
        count_free(s, c);
}

void count_drop(struct store *s, struct parked *p)
{
        count_free(s, container_of(p, struct count, parked));
}
