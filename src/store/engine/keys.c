/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops on values and queues, answered at once.
 *
 * Every write goes through write_value(), or entry_replace() for SET_MANY, and wakes the waits of
 * the key afterwards. A PUSH wakes a single wait. The entry of a new key is made before the write;
 * if this fails, entry_release() removes the entry.
 *
 * A queue lives beside the value of the key and exists while items are left.
 *
 * Ranks of a large job ask for the same long list of keys (keys_id, wire/store_keys.h). The encoded
 * answer to the last FETCH of this kind is kept until a value changes, and shared by all.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "store/engine/engine_private.h"

enum {
        PARTS_SMALL = 16,     /* values of an answer without a list from the heap */
        KEEP_VALUE = 1 << 20, /* size up to which the answer to a FETCH is kept */
};

struct queue_item {
        struct queue_item *prev, *next;
        size_t len;
        char bytes[];
};

/* --- writing ---------------------------------------------------------------------------------- */

/* Finds or makes the entry of a key to be written; NULL: refused, no memory. */
static struct store_entry *entry_to_write(struct store *s, struct request_id id, struct bytes key)
{
        struct store_entry *e = entry_make(&s->table, key);

        if (!e)
                store_refuse_nomem(s, id);
        return e;
}

static void wake_waits(struct store *s, struct store_entry *e)
{
        wait_wake(s, e);
        counter_wake(s, e);
}

/* Writes @value behind the first @keep bytes. False: refused, and the entry may be gone. */
static bool write_value(struct store *s, struct request_id id, struct store_entry *e, size_t keep,
                        struct bytes value)
{
        if (keep + value.len > STORE_VALUE_MAX) {
                store_refuse(s, id, STORE_TOO_BIG, "the value would be larger than %d bytes",
                             STORE_VALUE_MAX);
        } else if (entry_write(&s->table, e, keep, value) < 0) {
                store_refuse_nomem(s, id);
        } else {
                wake_waits(s, e);
                return true;
        }
        entry_release(&s->table, e);
        return false;
}

bool keys_add_number(struct store *s, struct request_id id, struct store_entry *e, int64_t n,
                     int64_t *sum)
{
        char text[24];

        if (!entry_number(e, sum) || __builtin_add_overflow(*sum, n, sum)) {
                store_refuse(s, id, STORE_INVALID,
                             "key `%s` is not a number that can take %" PRId64,
                             KEY_FORMAT(entry_key(e)), n);
                entry_release(&s->table, e);
                return false;
        }
        snprintf(text, sizeof(text), "%" PRId64, *sum);
        return write_value(s, id, e, 0, bytes_of(text));
}

void keys_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_to_write(s, id, req->key);

        if (e && write_value(s, id, e, 0, req->value))
                store_answer_number(s, id, 0);
}

void keys_append(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_to_write(s, id, req->key);

        if (e && write_value(s, id, e, entry_value(e).len, req->value))
                store_answer_number(s, id, (int64_t)e->len);
}

void keys_add(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_to_write(s, id, req->key);
        int64_t sum;

        if (e && keys_add_number(s, id, e, req->number, &sum))
                store_answer_number(s, id, sum);
}

void keys_compare_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_find(&s->table, req->key);
        struct store_reply reply = { .status = STORE_OK };
        struct bytes now = entry_value(e);

        /* A missing key compares as an empty value. */
        if (now.len == req->expect.len &&
            (now.len == 0 || memcmp(now.p, req->expect.p, now.len) == 0)) {
                e = e ? e : entry_to_write(s, id, req->key);
                if (!e || !write_value(s, id, e, 0, req->value))
                        return;
                reply.number = 1;
        } else if (!e || !e->present) {
                reply.number = -1;
        }
        reply.value = entry_value(e);
        store_answer(s, id, &reply);
}

void keys_check(struct store *s, struct request_id id, const struct store_request *req)
{
        bool all = true;

        for (uint32_t i = 0; i < req->n_keys && all; i++)
                all = entry_has_any(entry_find(&s->table, req->keys[i]));
        store_answer_number(s, id, all);
}

void keys_delete(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_find(&s->table, req->key);
        bool existed = e && e->present;

        /* A queue under this key stays: DELETE removes values. */
        if (existed)
                entry_clear(&s->table, e);
        store_answer_number(s, id, existed);
}

void keys_num_keys(struct store *s, struct request_id id, const struct store_request *req)
{
        struct bytes prefix = req->key;
        struct store_entry *e, *next;
        int64_t n = 0;

        if (prefix.len == 0) { /* counted along the way, without hnlaunch's own keys */
                store_answer_number(s, id, (int64_t)s->table.n_present);
                return;
        }
        HASH_ITER(hh, s->table.entries, e, next)
        {
                if (e->present && e->key_len >= prefix.len &&
                    memcmp(e->key, prefix.p, prefix.len) == 0 && !store_key_is_own(entry_key(e)))
                        n++;
        }
        store_answer_number(s, id, n);
}

/* --- many at once ----------------------------------------------------------------------------- */

/* Answers with parts lent by their entries: the bytes are copied once, into the message. */
static void answer_parts(struct store *s, struct request_id id, struct store_reply *reply)
{
        if (store_reply_value_len(reply) > STORE_ANSWER_MAX)
                store_refuse(s, id, STORE_TOO_BIG, "the answer would be larger than %d bytes",
                             STORE_ANSWER_MAX);
        else
                store_answer(s, id, reply);
}

/* Keeps the answer to a FETCH. False: too large, or no memory. */
static bool keep_fetch(struct store *s, uint64_t keys_id, const struct store_reply *reply)
{
        if (store_reply_value_len(reply) > KEEP_VALUE)
                return false;
        buf_clear(&s->fetched.value);
        store_reply_encode_value(&s->fetched.value, reply);
        if (buf_failed(&s->fetched.value)) {
                buf_finish(&s->fetched.value); /* buf_failed() is true until then */
                s->fetched.keys_id = 0;
                return false;
        }
        s->fetched.keys_id = keys_id;
        s->fetched.at = s->table.writes;
        s->fetched.number = reply->number;
        return true;
}

void keys_fetch(struct store *s, struct request_id id, const struct store_request *req)
{
        bool kept = req->keys_id && s->fetched.keys_id == req->keys_id &&
                    s->fetched.at == s->table.writes;
        struct bytes small[PARTS_SMALL] = { 0 };
        struct bytes *parts = small;
        struct store_reply reply = { .status = STORE_OK, .n_parts = req->n_keys };

        if (!kept && req->n_keys > PARTS_SMALL)
                parts = calloc(req->n_keys, sizeof(*parts));
        if (!parts) {
                store_refuse_nomem(s, id);
                return;
        }
        /* A missing key is an empty part, and is not counted in reply.number. */
        for (uint32_t i = 0; i < req->n_keys && !kept; i++) {
                const struct store_entry *e = entry_find(&s->table, req->keys[i]);

                parts[i] = entry_value(e);
                reply.number += e && e->present;
        }
        reply.parts = parts;
        kept = kept || (req->keys_id && keep_fetch(s, req->keys_id, &reply));
        if (kept)
                store_answer(s, id,
                             &(struct store_reply){ .status = STORE_OK,
                                                    .number = s->fetched.number,
                                                    .value = { buf_data(&s->fetched.value),
                                                               buf_len(&s->fetched.value) } });
        else
                answer_parts(s, id, &reply);
        if (parts != small)
                free(parts);
}

void keys_list(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        /* n_present leaves out hnlaunch's own keys, as the loop does: the array is large enough.
         * calloc() of 0 bytes may return NULL. */
        struct bytes *parts = calloc(MAX(s->table.n_present, (size_t)1), sizeof(*parts));
        struct store_reply reply = { .status = STORE_OK, .parts = parts };
        struct store_entry *e, *next;

        if (!parts) {
                store_refuse_nomem(s, id);
                return;
        }
        HASH_ITER(hh, s->table.entries, e, next)
        {
                if (e->present && !store_key_is_own(entry_key(e)))
                        parts[reply.n_parts++] = entry_key(e);
        }
        reply.number = reply.n_parts;
        answer_parts(s, id, &reply);
        free(parts);
}

/* A write of a SET_MANY, with all memory for it. */
struct prepared_write {
        struct store_entry *e;
        char *value;
        size_t len;
};

static void drop_writes(struct store *s, struct prepared_write *writes, uint32_t n)
{
        for (uint32_t i = 0; i < n && writes; i++) {
                quota_free(&s->table.quota, writes[i].value, writes[i].len);
                if (!writes[i].e)
                        continue;
                writes[i].e->refs--;
                entry_release(&s->table, writes[i].e);
        }
        free(writes);
}

/* All or nothing: every allocation comes before the first change. */
void keys_set_many(struct store *s, struct request_id id, const struct store_request *req)
{
        struct prepared_write *writes = calloc(MAX(req->n_keys, 1U), sizeof(*writes));
        bool ready = writes;

        for (uint32_t i = 0; i < req->n_keys && ready; i++) {
                struct bytes value = req->values[i];

                writes[i].e = entry_make(&s->table, req->keys[i]);
                /* A key named twice has two references, and the later value stays. */
                if (writes[i].e)
                        writes[i].e->refs++;
                writes[i].value = quota_alloc(&s->table.quota, value.len);
                writes[i].len = value.len;
                ready = writes[i].e && writes[i].value;
                if (ready && value.len)
                        memcpy(writes[i].value, value.p, value.len);
        }
        if (!ready) {
                drop_writes(s, writes, req->n_keys);
                store_refuse_nomem(s, id);
                return;
        }
        for (uint32_t i = 0; i < req->n_keys; i++) {
                entry_replace(&s->table, writes[i].e, writes[i].value, req->values[i].len);
                writes[i].value = NULL;
        }
        /* All values are there before the first client is woken. */
        for (uint32_t i = 0; i < req->n_keys; i++)
                wake_waits(s, writes[i].e);
        drop_writes(s, writes, req->n_keys);
        store_answer_number(s, id, 0);
}

/* --- queues ----------------------------------------------------------------------------------- */

void queue_push(struct store *s, struct request_id id, const struct store_request *req)
{
        struct quota *q = &s->table.quota;
        struct queue_item *item = quota_alloc(q, sizeof(*item) + req->value.len);
        struct store_entry *e = item ? entry_make(&s->table, req->key) : NULL;

        if (!e) {
                quota_free(q, item, sizeof(*item) + req->value.len);
                store_refuse_nomem(s, id);
                return;
        }
        item->len = req->value.len;
        if (item->len)
                memcpy(item->bytes, req->value.p, item->len);
        DL_APPEND(e->queue, item);
        e->n_items++;
        s->table.presence++;
        wait_wake_one(s, e);
        /* The item stays in the queue: the client woken fetches the item with a POP. */
        store_answer_number(s, id, (int64_t)e->n_items);
}

static void drop_first_item(struct store *s, struct store_entry *e)
{
        struct queue_item *first = e->queue;

        DL_DELETE(e->queue, first);
        e->n_items--;
        quota_free(&s->table.quota, first, sizeof(*first) + first->len);
}

void queue_pop(struct store *s, struct request_id id, const struct store_request *req)
{
        struct store_entry *e = entry_find(&s->table, req->key);
        struct store_reply reply = { .status = STORE_OK };

        if (!e || !e->queue) {
                store_answer(s, id, &reply);
                return;
        }
        /* The number includes the item, so 0 means an empty queue. */
        reply.number = (int64_t)e->n_items;
        reply.value = (struct bytes){ e->queue->bytes, e->queue->len };
        /* The answer lends the bytes of the item, so the item goes afterwards. */
        store_answer(s, id, &reply);
        drop_first_item(s, e);
        s->table.presence += !e->queue;
        entry_release(&s->table, e);
}

void queue_len(struct store *s, struct request_id id, const struct store_request *req)
{
        const struct store_entry *e = entry_find(&s->table, req->key);

        store_answer_number(s, id, e ? (int64_t)e->n_items : 0);
}

void queue_clear(struct store *s, struct store_entry *e)
{
        while (e->queue)
                drop_first_item(s, e);
}
