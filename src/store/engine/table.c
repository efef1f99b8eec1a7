/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry exists while the key has a value, waits hold a reference, or a queue has items;
 * entry_release() checks all three. Every allocation is charged to the quota of the store
 * (net.store_size).
 */
#include "store/engine/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

struct store_entry *entry_find(const struct entry_table *t, struct bytes key)
{
        struct store_entry *e;

        HASH_FIND(hh, t->entries, key.p, key.len, e);
        return e;
}

struct store_entry *entry_make(struct entry_table *t, struct bytes key)
{
        struct store_entry *e;
        unsigned hash;

        /* One hash serves both calls; HASH_FIND and HASH_ADD would hash the key twice. */
        HASH_VALUE(key.p, key.len, hash);
        HASH_FIND_BYHASHVALUE(hh, t->entries, key.p, key.len, hash, e);
        if (e)
                return e;
        e = quota_alloc(&t->quota, sizeof(*e) + key.len + 1);
        if (!e)
                return NULL;
        if (key.len)
                memcpy(e->key, key.p, key.len);
        e->key_len = key.len;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->entries, e->key, e->key_len, hash, e);
        if (!e->hh.tbl) {
                quota_free(&t->quota, e, sizeof(*e) + key.len + 1);
                return NULL;
        }
        return e;
}

void entry_release(struct entry_table *t, struct store_entry *e)
{
        if (e->present || e->refs || e->queue)
                return;
        HASH_DEL(t->entries, e);
        quota_free(&t->quota, e->value, e->cap);
        quota_free(&t->quota, e, sizeof(*e) + e->key_len + 1);
}

bool entry_has_any(const struct store_entry *e)
{
        return e && (e->present || e->queue);
}

struct bytes entry_key(const struct store_entry *e)
{
        return (struct bytes){ e->key, e->key_len };
}

struct bytes entry_value(const struct store_entry *e)
{
        return e && e->present ? (struct bytes){ e->value, e->len } : (struct bytes){ 0 };
}

/* Numbers are decimal text, so that GET shows them and SET can start them. */
bool entry_number(const struct store_entry *e, int64_t *number)
{
        char text[24], *end;

        *number = 0;
        if (!e->present)
                return true;
        /* 24: an int64_t has at most 20 characters. A longer text is no number. */
        if (e->len == 0 || e->len >= sizeof(text))
                return false;
        memcpy(text, e->value, e->len);
        text[e->len] = '\0';
        errno = 0;
        *number = strtoll(text, &end, 10);
        return errno == 0 && end == text + e->len;
}

static void set_present(struct entry_table *t, struct store_entry *e, bool present)
{
        /* Also for a value over a value: an answer kept for a FETCH must not outlive the change. */
        t->writes++;
        if (e->present == present)
                return;
        t->presence++;
        if (!store_key_is_own(entry_key(e)))
                t->n_present += present ? 1 : (size_t)-1;
        e->present = present;
}

int entry_write(struct entry_table *t, struct store_entry *e, size_t keep, struct bytes value)
{
        /* Doubles, for a chain of APPENDs. The limit of a value also limits the reserve. */
        size_t len = keep + value.len, cap = MAX(len, MIN(2 * e->cap, (size_t)STORE_VALUE_MAX));
        char *grown;

        if (len > e->cap) {
                grown = quota_resize(&t->quota, e->value, e->cap, cap);
                if (!grown)
                        return -ENOMEM;
                e->value = grown;
                e->cap = cap;
        }
        if (value.len)
                memcpy(e->value + keep, value.p, value.len);
        e->len = len;
        set_present(t, e, true);
        return 0;
}

void entry_replace(struct entry_table *t, struct store_entry *e, char *value, size_t len)
{
        quota_free(&t->quota, e->value, e->cap);
        e->value = value;
        e->len = e->cap = len;
        set_present(t, e, true);
}

void entry_clear(struct entry_table *t, struct store_entry *e)
{
        set_present(t, e, false);
        quota_free(&t->quota, e->value, e->cap);
        e->value = NULL;
        e->len = e->cap = 0;
        entry_release(t, e);
}
