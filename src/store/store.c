/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/private.h"

void store_answer(struct store *s, struct request_id id, struct store_reply *reply)
{
        reply->tag = id.tag;
        s->ops.reply(s->ctx, id.owner, reply);
}

void store_refuse(struct store *s, struct request_id id, enum store_status why, const char *fmt,
                  ...)
{
        char text[2 * STORE_KEY_MAX];
        struct store_reply reply = { .status = (uint8_t)why };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        reply.text = bytes_of(text);
        store_answer(s, id, &reply);
}

static void answer_number(struct store *s, struct request_id id, int64_t number)
{
        store_answer(s, id, &(struct store_reply){ .status = STORE_OK, .number = number });
}

struct slot *store_slot(struct store *s, struct bytes key)
{
        struct slot *slot;

        HASH_FIND(hh, s->slots, key.p, key.len, slot);
        return slot;
}

struct slot *store_slot_make(struct store *s, struct bytes key)
{
        struct slot *slot = store_slot(s, key);

        if (slot)
                return slot;
        slot = calloc(1, sizeof(*slot) + key.len + 1);
        if (!slot)
                return NULL;
        memcpy(slot->key, key.p, key.len);
        slot->key_len = key.len;
        HASH_ADD_KEYPTR(hh, s->slots, slot->key, slot->key_len, slot);
        if (!slot->hh.tbl) {
                free(slot);
                return NULL;
        }
        return slot;
}

void store_slot_release(struct store *s, struct slot *slot)
{
        if (slot->present || slot->refs)
                return;
        HASH_DEL(s->slots, slot);
        free(slot->value);
        free(slot);
}

/* Room for @len bytes of value; what is there stays. */
static int slot_grow(struct slot *slot, size_t len)
{
        size_t cap = len <= slot->cap ? slot->cap : MAX(len, MIN(2 * slot->cap, STORE_VALUE_MAX));
        char *value = slot->value;

        if (cap == slot->cap)
                return 0;
        value = realloc(value, cap);
        if (!value)
                return -ENOMEM;
        slot->value = value;
        slot->cap = cap;
        return 0;
}

/* Writes @value behind the first @keep bytes and wakes who waits. Refuses in the store's name. */
static bool slot_write(struct store *s, struct request_id id, struct slot *slot, size_t keep,
                       struct bytes value)
{
        if (keep + value.len > STORE_VALUE_MAX) {
                store_refuse(s, id, STORE_TOO_BIG, "the value would be larger than %d bytes",
                             STORE_VALUE_MAX);
                return false;
        }
        if (slot_grow(slot, keep + value.len) < 0) {
                store_refuse(s, id, STORE_NOMEM, "the store is out of memory");
                store_slot_release(s, slot);
                return false;
        }
        if (value.len)
                memcpy(slot->value + keep, value.p, value.len);
        slot->len = keep + value.len;
        slot->present = true;
        wait_wake(s, slot);
        return true;
}

/* The slot of a key that is about to be written; refuses when there is no memory. */
static struct slot *slot_for_write(struct store *s, struct request_id id, struct bytes key)
{
        struct slot *slot = store_slot_make(s, key);

        if (!slot)
                store_refuse(s, id, STORE_NOMEM, "the store is out of memory");
        return slot;
}

static void on_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_for_write(s, id, req->key);

        if (slot && slot_write(s, id, slot, 0, req->value))
                answer_number(s, id, 0);
}

static void on_append(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_for_write(s, id, req->key);

        if (slot && slot_write(s, id, slot, slot->present ? slot->len : 0, req->value))
                answer_number(s, id, (int64_t)slot->len);
}

/* Counters are decimal text, so that GET shows them and SET can start them. */
static bool number_parse(const struct slot *slot, int64_t *ret)
{
        char text[24], *end;

        if (!slot->present) {
                *ret = 0;
                return true;
        }
        if (slot->len == 0 || slot->len >= sizeof(text))
                return false;
        memcpy(text, slot->value, slot->len);
        text[slot->len] = '\0';
        errno = 0;
        *ret = strtoll(text, &end, 10);
        return errno == 0 && end == text + slot->len;
}

static void on_add(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_for_write(s, id, req->key);
        char text[24];
        int64_t sum;

        if (!slot)
                return;
        if (!number_parse(slot, &sum) || __builtin_add_overflow(sum, req->number, &sum)) {
                store_refuse(s, id, STORE_INVALID,
                             "key `%.*s` is not a number that can take %" PRId64,
                             (int)slot->key_len, slot->key, req->number);
                store_slot_release(s, slot);
                return;
        }
        snprintf(text, sizeof(text), "%" PRId64, sum);
        if (slot_write(s, id, slot, 0, bytes_of(text)))
                answer_number(s, id, sum);
}

static bool slot_equals(const struct slot *slot, struct bytes b)
{
        if (!slot || !slot->present)
                return b.len == 0;
        return slot->len == b.len && (b.len == 0 || memcmp(slot->value, b.p, b.len) == 0);
}

static void on_compare_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = store_slot(s, req->key);
        struct store_reply reply = { .status = STORE_OK };

        if (slot_equals(slot, req->expect)) {
                slot = slot_for_write(s, id, req->key);
                if (!slot || !slot_write(s, id, slot, 0, req->value))
                        return;
                reply.number = 1;
        }
        if (slot && slot->present)
                reply.value = (struct bytes){ slot->value, slot->len };
        store_answer(s, id, &reply);
}

static void on_check(struct store *s, struct request_id id, const struct store_request *req)
{
        bool all = true;

        for (uint32_t i = 0; i < req->n_keys && all; i++) {
                const struct slot *slot = store_slot(s, req->keys[i]);

                all = slot && slot->present;
        }
        answer_number(s, id, all);
}

static void on_delete(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = store_slot(s, req->key);
        bool existed = slot && slot->present;

        if (existed) {
                slot->present = false;
                free(slot->value);
                slot->value = NULL;
                slot->len = slot->cap = 0;
                store_slot_release(s, slot);
        }
        answer_number(s, id, existed);
}

static void on_num_keys(struct store *s, struct request_id id, const struct store_request *req)
{
        struct bytes prefix = req->key;
        struct slot *slot, *next;
        int64_t n = 0;

        HASH_ITER(hh, s->slots, slot, next)
        {
                if (slot->present && slot->key_len >= prefix.len &&
                    (prefix.len == 0 || memcmp(slot->key, prefix.p, prefix.len) == 0))
                        n++;
        }
        answer_number(s, id, n);
}

static void on_cancel(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        struct parked *p = parking_find(&s->parking, id.owner, id.tag);

        /* Not there: it was answered while the CANCEL was under way. */
        if (p && p->kind == PARKED_WAIT)
                wait_cancel(s, p);
        else if (p)
                meeting_cancel(s, p);
}

static void (*const on[])(struct store *s, struct request_id id,
                          const struct store_request *req) = {
        [STORE_SET] = on_set,           [STORE_ADD] = on_add,
        [STORE_APPEND] = on_append,     [STORE_COMPARE_SET] = on_compare_set,
        [STORE_CHECK] = on_check,       [STORE_DELETE] = on_delete,
        [STORE_NUM_KEYS] = on_num_keys, [STORE_GET] = wait_request,
        [STORE_WAIT] = wait_request,    [STORE_CANCEL] = on_cancel,
};

static bool within_limits(const struct store_request *req)
{
        for (uint32_t i = 0; i < req->n_keys; i++)
                if (req->keys[i].len > STORE_KEY_MAX)
                        return false;
        return req->key.len <= STORE_KEY_MAX && req->value.len <= STORE_VALUE_MAX;
}

void store_request(struct store *s, uint64_t owner, int rank, const struct store_request *req)
{
        struct request_id id = { owner, req->tag };

        if (!within_limits(req))
                store_refuse(s, id, STORE_TOO_BIG, "a key or value is too large");
        else if (req->op == STORE_BARRIER || req->op == STORE_GATHER || req->op == STORE_BROADCAST)
                meeting_request(s, id, rank, req);
        else if (req->op < ARRAY_SIZE(on) && on[req->op])
                on[req->op](s, id, req);
        else
                store_refuse(s, id, STORE_INVALID, "not a request for the store");
}

static void drop(struct store *s, struct parked *p)
{
        if (p->kind == PARKED_WAIT)
                wait_drop(s, p);
        else
                meeting_drop(s, p);
}

void store_forget(struct store *s, uint64_t owner)
{
        struct parked *p;

        while ((p = parking_first(&s->parking, owner)))
                drop(s, p);
}

static void fail_wait(void *ctx, struct parked *p)
{
        wait_fail(ctx, p);
}

static bool rank_ends(struct store *s, int rank, enum rank_state state)
{
        if (rank < 0 || rank >= s->world_size || s->rank_state[rank] != RANK_ALIVE)
                return false;
        s->rank_state[rank] = (unsigned char)state;
        s->n_lost++;
        return true;
}

void store_rank_failed(struct store *s, int rank, const char *text)
{
        if (!rank_ends(s, rank, RANK_FAILED))
                return;
        if (s->first_failed < 0) {
                s->failure = strdup(text);
                s->first_failed = rank;
        }
        meeting_rank_lost(s, rank);
        parking_each(&s->parking, PARKED_WAIT, fail_wait, s);
}

void store_rank_exited(struct store *s, int rank)
{
        if (rank_ends(s, rank, RANK_EXITED))
                meeting_rank_lost(s, rank);
}

size_t store_waiting(const struct store *s)
{
        return s->parking.n;
}

struct store *store_create(struct store_ops ops, void *ctx, int world_size)
{
        struct store *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        *s = (struct store){ .ops = ops, .ctx = ctx, .world_size = world_size, .first_failed = -1 };
        s->rank_state = calloc((size_t)MAX(world_size, 1), 1);
        if (!s->rank_state) {
                free(s);
                return NULL;
        }
        return s;
}

void store_destroy(struct store *s)
{
        struct slot *slot, *next;
        struct parked *p;

        if (!s)
                return;
        while ((p = parking_any(&s->parking)))
                drop(s, p);
        HASH_ITER(hh, s->slots, slot, next)
        {
                slot->present = false;
                store_slot_release(s, slot);
        }
        free(s->failure);
        free(s->rank_state);
        free(s);
}
