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

static struct request_id counter_wait_id(const struct counter_wait *c)
{
        return (struct request_id){ c->pending.owner, (uint32_t)c->pending.tag };
}

static struct counter_wait *create_counter_wait(struct store *s, struct request_id id,
                                                struct store_entry *e, int64_t number)
{
        struct counter_wait *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->pending = (struct pending_request){ .owner = id.owner,
                                               .tag = id.tag,
                                               .kind = PENDING_COUNTER };
        c->number = number;
        if (pending_add(&s->pending, &c->pending) < 0) {
                free(c);
                return NULL;
        }
        c->entry = e;
        e->refs++;
        return c;
}

/* Also for a wait not inserted yet. */
static void destroy_counter_wait(struct store *s, struct counter_wait *c)
{
        if (c->prev)
                DL_DELETE(c->entry->counter_waits, c);
        c->entry->refs--;
        entry_release(&s->table, c->entry);
        pending_remove(&s->pending, &c->pending);
        free(c);
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

                store_answer_number(s, counter_wait_id(c), n);
                destroy_counter_wait(s, c);
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
                destroy_counter_wait(s, c);
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
        destroy_counter_wait(s, c);
}

void counter_cancel(struct store *s, struct pending_request *p)
{
        struct counter_wait *c = container_of(p, struct counter_wait, pending);
        int64_t n;

        entry_number(c->entry, &n);
        store_refuse(s, counter_wait_id(c), STORE_TIMEOUT,
                     "the count `%s` is %" PRId64 ", %" PRId64 " are awaited",
                     KEY_FORMAT(entry_key(c->entry)), n, c->number);
        destroy_counter_wait(s, c);
}

void counter_fail(struct store *s, struct pending_request *p)
{
        struct counter_wait *c = container_of(p, struct counter_wait, pending);

        store_answer_failure(s, counter_wait_id(c), 0);
        destroy_counter_wait(s, c);
}

void counter_drop(struct store *s, struct pending_request *p)
{
        destroy_counter_wait(s, container_of(p, struct counter_wait, pending));
}
