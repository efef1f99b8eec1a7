/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reads and writes values and is answered at once.
 */
#include <stdlib.h>
#include <string.h>

#include "store/engine/engine_private.h"

enum {
        PARTS_SMALL = 16,     /* values of an answer that need no list from the heap */
        KEEP_VALUE = 1 << 20, /* an answer that is kept for the next who asks the same */
};

/* The slot of a key that is about to be written; refuses when there is no memory. */
static struct slot *for_write(struct store *s, struct request_id id, struct bytes key)
{
        struct slot *slot = slot_make(s, key);

        if (!slot)
                store_refuse_nomem(s, id);
        return slot;
}

void keys_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = for_write(s, id, req->key);

        if (slot && slot_write(s, id, slot, 0, req->value))
                store_answer_number(s, id, 0);
}

void keys_append(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = for_write(s, id, req->key);

        if (slot && slot_write(s, id, slot, slot_value(slot).len, req->value))
                store_answer_number(s, id, (int64_t)slot->len);
}

void keys_add(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = for_write(s, id, req->key);
        int64_t sum;

        if (slot && slot_add(s, id, slot, req->number, &sum))
                store_answer_number(s, id, sum);
}

static bool same(struct bytes a, struct bytes b)
{
        return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

void keys_compare_set(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_find(s, req->key);
        struct store_reply reply = { .status = STORE_OK };

        if (same(slot_value(slot), req->expect)) {
                slot = slot ? slot : for_write(s, id, req->key);
                if (!slot || !slot_write(s, id, slot, 0, req->value))
                        return;
                reply.number = 1;
        } else if (!slot || !slot->present) {
                reply.number = -1;
        }
        reply.value = slot_value(slot);
        store_answer(s, id, &reply);
}

void keys_check(struct store *s, struct request_id id, const struct store_request *req)
{
        bool all = true;

        for (uint32_t i = 0; i < req->n_keys && all; i++)
                all = slot_has_any(slot_find(s, req->keys[i]));
        store_answer_number(s, id, all);
}

void keys_delete(struct store *s, struct request_id id, const struct store_request *req)
{
        struct slot *slot = slot_find(s, req->key);
        bool existed = slot && slot->present;

        if (existed)
                slot_clear(s, slot);
        store_answer_number(s, id, existed);
}

void keys_num_keys(struct store *s, struct request_id id, const struct store_request *req)
{
        struct bytes prefix = req->key;
        struct slot *slot, *next;
        int64_t n = 0;

        if (prefix.len == 0) {
                store_answer_number(s, id, (int64_t)s->n_present);
                return;
        }
        HASH_ITER(hh, s->slots, slot, next)
        {
                if (slot->present && slot->key_len >= prefix.len &&
                    memcmp(slot->key, prefix.p, prefix.len) == 0)
                        n++;
        }
        store_answer_number(s, id, n);
}

/* --- many at once ----------------------------------------------------------------------------- */

/* The parts are lent by the slots: their bytes are copied once, into the message. */
static void answer_parts(struct store *s, struct request_id id, const struct bytes *parts,
                         uint32_t n, int64_t number)
{
        struct store_reply reply = {
                .status = STORE_OK, .number = number, .parts = parts, .n_parts = n
        };

        if (store_reply_value_len(&reply) > STORE_ANSWER_MAX)
                store_refuse(s, id, STORE_TOO_BIG, "the answer would be larger than %d bytes",
                             STORE_ANSWER_MAX);
        else
                store_answer(s, id, &reply);
}

static void answer_kept(struct store *s, struct request_id id)
{
        store_answer(s, id,
                     &(struct store_reply){ .status = STORE_OK,
                                            .number = s->fetched.number,
                                            .value = { buf_data(&s->fetched.value),
                                                       buf_len(&s->fetched.value) } });
}

static bool is_kept(const struct store *s, const struct store_request *req)
{
        return req->keys_id && s->fetched.keys_id == req->keys_id && s->fetched.at == s->writes;
}

/* False: it is too large, or there is no memory. */
static bool keep(struct store *s, uint64_t keys_id, const struct store_reply *reply)
{
        if (store_reply_value_len(reply) > KEEP_VALUE)
                return false;
        buf_clear(&s->fetched.value);
        store_reply_encode_value(&s->fetched.value, reply);
        if (buf_failed(&s->fetched.value)) {
                buf_finish(&s->fetched.value);
                s->fetched.keys_id = 0;
                return false;
        }
        s->fetched.keys_id = keys_id;
        s->fetched.at = s->writes;
        s->fetched.number = reply->number;
        return true;
}

void keys_fetch(struct store *s, struct request_id id, const struct store_request *req)
{
        struct bytes small[PARTS_SMALL] = { 0 };
        struct bytes *parts = small;
        int64_t n = 0;

        if (is_kept(s, req)) {
                answer_kept(s, id);
                return;
        }
        if (req->n_keys > PARTS_SMALL)
                parts = calloc(req->n_keys, sizeof(*parts));
        if (!parts) {
                store_refuse_nomem(s, id);
                return;
        }
        for (uint32_t i = 0; i < req->n_keys; i++) {
                const struct slot *slot = slot_find(s, req->keys[i]);

                parts[i] = slot_value(slot);
                n += slot && slot->present;
        }
        if (req->keys_id &&
            keep(s, req->keys_id,
                 &(struct store_reply){ .number = n, .parts = parts, .n_parts = req->n_keys }))
                answer_kept(s, id);
        else
                answer_parts(s, id, parts, req->n_keys, n);
        if (parts != small)
                free(parts);
}

void keys_list(struct store *s, struct request_id id, const struct store_request *req UNUSED)
{
        struct bytes *parts = calloc(MAX(s->n_present, (size_t)1), sizeof(*parts));
        struct slot *slot, *next;
        uint32_t n = 0;

        if (!parts) {
                store_refuse_nomem(s, id);
                return;
        }
        HASH_ITER(hh, s->slots, slot, next)
        {
                if (slot->present)
                        parts[n++] = slot_key(slot);
        }
        answer_parts(s, id, parts, n, n);
        free(parts);
}

/* One write of a SET_MANY, with all the memory that it needs. */
struct write {
        struct slot *slot;
        char *value;
};

static void writes_drop(struct store *s, struct write *writes, uint32_t n)
{
        for (uint32_t i = 0; i < n && writes; i++) {
                free(writes[i].value);
                if (!writes[i].slot)
                        continue;
                writes[i].slot->refs--;
                slot_release(s, writes[i].slot);
        }
        free(writes);
}

static bool write_prepare(struct store *s, struct write *w, struct bytes key, struct bytes value)
{
        w->slot = slot_make(s, key);
        if (!w->slot)
                return false;
        w->slot->refs++;
        w->value = malloc(MAX(value.len, (size_t)1));
        if (w->value && value.len)
                memcpy(w->value, value.p, value.len);
        return w->value;
}

/* All or nothing: what can fail comes before the first value is changed. */
void keys_set_many(struct store *s, struct request_id id, const struct store_request *req)
{
        struct write *writes = calloc(MAX(req->n_keys, 1U), sizeof(*writes));
        bool ready = writes;

        for (uint32_t i = 0; i < req->n_keys && ready; i++)
                ready = write_prepare(s, &writes[i], req->keys[i], req->values[i]);
        if (!ready) {
                writes_drop(s, writes, req->n_keys);
                store_refuse_nomem(s, id);
                return;
        }
        for (uint32_t i = 0; i < req->n_keys; i++) {
                slot_replace(s, writes[i].slot, writes[i].value, req->values[i].len);
                writes[i].value = NULL;
        }
        for (uint32_t i = 0; i < req->n_keys; i++)
                slot_wake(s, writes[i].slot);
        writes_drop(s, writes, req->n_keys);
        store_answer_number(s, id, 0);
}
