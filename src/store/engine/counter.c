/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COUNT: adds to a counter and waits until the counter is large enough. The waits of an entry are a
 * binary heap with the smallest number in front, so a write looks only at the waits to be woken,
 * and n waits cost n log n steps in whatever order their numbers come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "store/engine/engine_private.h"

struct counter_wait {
        struct pending_request pending;
        struct store_entry *entry;
        int64_t number; /* awaited: the counter must reach this number */
        bool inserted;  /* in the heap; false = only a place is reserved */
        size_t at;      /* in the heap */
};

static void place_wait(struct counter_heap *h, size_t at, struct counter_wait *c)
{
        h->v[at] = c;
        c->at = at;
}

/* Puts @c where it belongs on the way from @at to the front, or from @at to the end. Only one of
 * the loops does anything. The old content of v[@at] is overwritten. */
static void settle_wait(struct counter_heap *h, size_t at, struct counter_wait *c)
{
        size_t child;

        for (; at && c->number < h->v[(at - 1) / 2]->number; at = (at - 1) / 2)
                place_wait(h, at, h->v[(at - 1) / 2]);
        for (; (child = 2 * at + 1) < h->n; at = child) {
                if (child + 1 < h->n && h->v[child + 1]->number < h->v[child]->number)
                        child++;
                if (h->v[child]->number >= c->number)
                        break;
                place_wait(h, at, h->v[child]);
        }
        place_wait(h, at, c);
}

/* Makes room for one wait more, so that insert_wait() cannot fail. */
static int reserve_wait(struct quota *q, struct counter_heap *h)
{
        const size_t size = sizeof(struct counter_wait *), cap = MAX(h->cap * 2, (size_t)4);
        void *v;

        if (h->reserved == h->cap) {
                v = quota_resize(q, h->v, h->cap * size, cap * size);
                if (!v)
                        return -ENOMEM;
                h->v = v;
                h->cap = cap;
        }
        h->reserved++;
        return 0;
}

static void insert_wait(struct counter_heap *h, struct counter_wait *c)
{
        c->inserted = true;
        settle_wait(h, h->n++, c);
}

/* Gives the room back, too. The last wait fills the hole. A wait not inserted holds a reservation
 * only. */
static void take_wait_out(struct quota *q, struct counter_heap *h, struct counter_wait *c)
{
        struct counter_wait *last = c->inserted ? h->v[--h->n] : c;

        if (last != c)
                settle_wait(h, c->at, last);
        if (--h->reserved)
                return;
        quota_free(q, h->v, h->cap * sizeof(struct counter_wait *));
        *h = (struct counter_heap){ 0 };
}

/* Makes the wait and enters it at the key and among the pending requests; all or nothing. NULL: no
 * room. */
static struct counter_wait *create_counter_wait(struct store *s, struct request_id id,
                                                struct store_entry *e, int64_t number)
{
        struct counter_wait *c = quota_alloc(&s->table.quota, sizeof(*c));

        if (!c)
                return NULL;
        c->number = number;
        if (reserve_wait(&s->table.quota, &e->counter_waits) < 0) {
                quota_free(&s->table.quota, c, sizeof(*c));
                return NULL;
        }
        if (pending_add(&s->pending, &c->pending, id.owner, id.tag, PENDING_COUNTER) < 0) {
                take_wait_out(&s->table.quota, &e->counter_waits, c);
                quota_free(&s->table.quota, c, sizeof(*c));
                return NULL;
        }
        c->entry = e;
        e->refs++; /* keeps the entry while the counter has no value */
        return c;
}

/* Also for a wait not inserted yet. */
void counter_drop(struct store *s, struct pending_request *p)
{
        struct counter_wait *c = container_of(p, struct counter_wait, pending);

        take_wait_out(&s->table.quota, &c->entry->counter_waits, c);
        c->entry->refs--;
        entry_release(&s->table, c->entry);
        pending_remove(&s->pending, p);
        quota_free(&s->table.quota, c, sizeof(*c));
}

void counter_wake(struct store *s, struct store_entry *e)
{
        int64_t n;

        if (!e->counter_waits.n || !entry_number(e, &n))
                return;
        /* The smallest number is in front, so the first wait that is not ready ends the loop. */
        while (e->counter_waits.n && e->counter_waits.v[0]->number <= n) {
                struct counter_wait *c = e->counter_waits.v[0];

                store_answer_number(s, pending_id(&c->pending), n);
                counter_drop(s, &c->pending);
        }
}

void counter_request(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_make(&s->table, req->key);
        struct counter_wait *c = e ? create_counter_wait(s, id, e, req->number) : NULL;
        int64_t sum;

        /* The reservation comes before the addition: a refused COUNT has not counted. */
        if (!c) {
                if (e)
                        entry_release(&s->table, e);
                store_refuse_nomem(s, id);
                return;
        }
        /* The wait is not in the heap yet, so the addition wakes older waits only. */
        if (!keys_add_number(s, id, e, MAX(req->total, 1), &sum)) {
                /* The reference of @c has kept the entry; the drop may free it. */
                counter_drop(s, &c->pending);
                return;
        }
        /* After a failure the others may never come: the amount counts, and no caller waits. */
        if (sum < req->number && s->first_failed < 0) {
                insert_wait(&e->counter_waits, c);
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
