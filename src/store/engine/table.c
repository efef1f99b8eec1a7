/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys. A key is hashed once per request.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/engine/engine_private.h"

struct slot *slot_find(struct store *s, struct bytes key)
{
        struct slot *slot;

        HASH_FIND(hh, s->slots, key.p, key.len, slot);
        return slot;
}

struct slot *slot_make(struct store *s, struct bytes key)
{
        struct slot *slot;
        unsigned hash;

        HASH_VALUE(key.p, key.len, hash);
        HASH_FIND_BYHASHVALUE(hh, s->slots, key.p, key.len, hash, slot);
        if (slot)
                return slot;
        slot = calloc(1, sizeof(*slot) + key.len + 1);
        if (!slot)
                return NULL;
        if (key.len)
                memcpy(slot->key, key.p, key.len);
        slot->key_len = key.len;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, s->slots, slot->key, slot->key_len, hash, slot);
        if (!slot->hh.tbl) {
                free(slot);
                return NULL;
        }
        return slot;
}

void slot_release(struct store *s, struct slot *slot)
{
        if (slot->present || slot->refs || slot->queue)
                return;
        HASH_DEL(s->slots, slot);
        free(slot->value);
        free(slot);
}

bool slot_has_any(const struct slot *slot)
{
        return slot && (slot->present || slot->queue);
}

struct bytes slot_key(const struct slot *slot)
{
        return (struct bytes){ slot->key, slot->key_len };
}

struct bytes slot_value(const struct slot *slot)
{
        return slot && slot->present ? (struct bytes){ slot->value, slot->len }
                                     : (struct bytes){ 0 };
}

/* Numbers are decimal text, so that GET shows them and SET can start them. */
bool slot_number(const struct slot *slot, int64_t *number)
{
        char text[24], *end;

        *number = 0;
        if (!slot->present)
                return true;
        if (slot->len == 0 || slot->len >= sizeof(text))
                return false;
        memcpy(text, slot->value, slot->len);
        text[slot->len] = '\0';
        errno = 0;
        *number = strtoll(text, &end, 10);
        return errno == 0 && end == text + slot->len;
}

static void set_present(struct store *s, struct slot *slot, bool present)
{
        s->writes++;
        if (slot->present == present)
                return;
        s->presence++;
        s->n_present += present ? 1 : (size_t)-1;
        slot->present = present;
}

/* Room for @len bytes of value; what is there stays. */
static int grow(struct slot *slot, size_t len)
{
        size_t cap = len <= slot->cap ? slot->cap : MAX(len, MIN(2 * slot->cap, STORE_VALUE_MAX));
        char *value;

        if (cap == slot->cap)
                return 0;
        value = realloc(slot->value, cap);
        if (!value)
                return -ENOMEM;
        slot->value = value;
        slot->cap = cap;
        return 0;
}

void slot_wake(struct store *s, struct slot *slot)
{
        wait_wake(s, slot);
        count_wake(s, slot);
}

bool slot_write(struct store *s, struct request_id id, struct slot *slot, size_t keep,
                struct bytes value)
{
        if (keep + value.len > STORE_VALUE_MAX) {
                store_refuse(s, id, STORE_TOO_BIG, "the value would be larger than %d bytes",
                             STORE_VALUE_MAX);
                slot_release(s, slot);
                return false;
        }
        if (grow(slot, keep + value.len) < 0) {
                store_refuse_nomem(s, id);
                slot_release(s, slot);
                return false;
        }
        if (value.len)
                memcpy(slot->value + keep, value.p, value.len);
        slot->len = keep + value.len;
        set_present(s, slot, true);
        slot_wake(s, slot);
        return true;
}

bool slot_add(struct store *s, struct request_id id, struct slot *slot, int64_t n, int64_t *sum)
{
        char text[24];

        if (!slot_number(slot, sum) || __builtin_add_overflow(*sum, n, sum)) {
                store_refuse(s, id, STORE_INVALID,
                             "key `%s` is not a number that can take %" PRId64,
                             KEY_TEXT_OF(slot_key(slot)), n);
                slot_release(s, slot);
                return false;
        }
        snprintf(text, sizeof(text), "%" PRId64, *sum);
        return slot_write(s, id, slot, 0, bytes_of(text));
}

void slot_replace(struct store *s, struct slot *slot, char *value, size_t len)
{
        free(slot->value);
        slot->value = value;
        slot->len = slot->cap = len;
        set_present(s, slot, true);
}

void slot_clear(struct store *s, struct slot *slot)
{
        set_present(s, slot, false);
        free(slot->value);
        slot->value = NULL;
        slot->len = slot->cap = 0;
        slot_release(s, slot);
}
