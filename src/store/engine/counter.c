/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COUNT: adds to a counter and waits until the counter is large enough. Waits hang at the entry in
 * ascending order of their numbers, so a write looks only at the waits to be woken; as a rule all
 * wait for the same number, and a newcomer goes to the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

struct counter_wait {
        struct pending_request pending;
        struct store_entry *entry;
        struct counter_wait *prev, *next;
        int64_t number;
};

static struct counter_wait *create_counter_wait(struct store *s, struct request_id id,
                                                struct store_entry *e, int64_t number)
{
        struct counter_wait *c = quota_alloc(&s->table.quota, sizeof(*c));

        if (!c)
                return NULL;
        c->number = number;
        if (pending_add(&s->pending, &c->pending, id.owner, id.tag, PENDING_COUNTER) < 0) {
                quota_free(&s->table.quota, c, sizeof(*c));
                return NULL;
        }
        c->entry = e;
        e->refs++;
        return c;
}

/* Also for a wait not inserted yet. */
void counter_drop(struct store *s, struct pending_request *p)
{
        struct counter_wait *c = container_of(p, struct counter_wait, pending);

        if (c->prev)
                DL_DELETE(c->entry->counter_waits, c);
        c->entry->refs--;
        entry_release(&s->table, c->entry);
        pending_remove(&s->pending, p);
        quota_free(&s->table.quota, c, sizeof(*c));
}

static void insert_ascending(struct counter_wait *c)
{
        struct counter_wait *after = c->entry->counter_waits ? c->entry->counter_waits->prev : NULL;

        while (after && after->number > c->number)
                after = after == c->entry->counter_waits ? NULL : after->prev;
        if (after)
                DL_APPEND_ELEM(c->entry->counter_waits, after, c);
        else
                DL_PREPEND(c->entry->counter_waits, c);
}

void counter_wake(struct store *s, struct store_entry *e)
{
        int64_t n;

        if (!e->counter_waits || !entry_number(e, &n))
                return;
        while (e->counter_waits && e->counter_waits->number <= n) {
                struct counter_wait *c = e->counter_waits;

                store_answer_number(s, pending_id(&c->pending), n);
                counter_drop(s, &c->pending);
        }
}

void counter_request(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_make(&s->table, req->key);
        struct counter_wait *c = e ? create_counter_wait(s, id, e, req->number) : NULL;
        int64_t sum;

        if (!c) {
                if (e)
                        entry_release(&s->table, e);
                store_refuse_nomem(s, id);
                return;
        }
        if (!keys_add_number(s, id, e, MAX(req->total, 1), &sum)) {
                counter_drop(s, &c->pending);
                return;
        }
        if (sum < req->number && s->first_failed < 0) {
                insert_ascending(c);
                return;
        }
        if (sum < req->number)
                store_answer_failure(s, id, 0);
        else
                store_answer_number(s, id, sum);
        counter_drop(s, &c->pending);
}

void counter_cancel(struct store *s, struct pending_request *p)
{
        struct counter_wait *c = container_of(p, struct counter_wait, pending);
        int64_t n;

        entry_number(c->entry, &n);
        store_refuse(s, pending_id(&c->pending), STORE_TIMEOUT,
                     "the count `%s` is %" PRId64 ", %" PRId64 " are awaited",
                     KEY_FORMAT(entry_key(c->entry)), n, c->number);
        counter_drop(s, &c->pending);
}

void counter_fail(struct store *s, struct pending_request *p)
{
        store_answer_failure(s, pending_id(p), 0);
        counter_drop(s, p);
}
