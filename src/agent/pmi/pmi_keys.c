/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of names and values, and a list of keys put here since the last fence. A key put
 * twice is twice in the list, and the later value wins at every node, because pmi_keys_merge() goes
 * through the list in order. Sizes are counted against PMI_KEYS_BYTES_MAX before memory is
 * allocated.
 */
#include "agent/pmi/pmi_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "wire/codec.h"

struct pmi_key {
        UT_hash_handle hh;
        char *value;
        char name[];
};

/* Sets a key. -EINVAL: the name is empty or too long; -ENOSPC: all keys together are too large. */
static int set_pmi_key(struct pmi_keys *k, const char *name, size_t name_len, const char *value,
                       size_t value_len)
{
        struct pmi_key *e;
        /* The later sum; a sum above the limit changes nothing. */
        size_t bytes = k->bytes;

        if (!name_len || name_len > PMI_KEY_MAX)
                return -EINVAL;
        HASH_FIND(hh, k->by_name, name, name_len, e);
        bytes += value_len;
        bytes -= e ? strlen(e->value) : 0;
        bytes += e ? 0 : sizeof(*e) + name_len + 2; /* with the two NULs */
        if (bytes > PMI_KEYS_BYTES_MAX)
                return -ENOSPC;
        k->bytes = bytes;
        if (!e) {
                e = xcalloc(1, sizeof(*e) + name_len + 1);
                memcpy(e->name, name, name_len);
                HASH_ADD_KEYPTR(hh, k->by_name, e->name, name_len, e);
        }
        free(e->value);
        e->value = xstrndup(value, value_len);
        return 0;
}

int pmi_keys_put(struct pmi_keys *k, const char *key, const char *value)
{
        size_t key_len = strlen(key), value_len = strlen(value);
        int r;

        /* The pending keys travel as a single value of the store. 8: two lengths. */
        if (buf_len(&k->pending) + key_len + value_len + 8 > STORE_VALUE_MAX)
                return -ENOSPC;
        r = set_pmi_key(k, key, key_len, value, value_len);
        if (r < 0)
                return r;
        put_bytes(&k->pending, key, key_len);
        put_bytes(&k->pending, value, value_len);
        return buf_failed(&k->pending) ? -ENOSPC : 0;
}

const char *pmi_keys_get(const struct pmi_keys *k, const char *key)
{
        const struct pmi_key *e;

        HASH_FIND(hh, k->by_name, key, strlen(key), e);
        return e ? e->value : NULL;
}

int pmi_keys_merge(struct pmi_keys *k, struct bytes pending)
{
        struct reader in = READER_INIT(pending.p, pending.len);
        int r = 0;

        while (in.left && r == 0) {
                size_t key_len, value_len;
                const char *key = take_bytes(&in, PMI_KEY_MAX, &key_len);
                const char *value = take_bytes(&in, STORE_VALUE_MAX, &value_len);

                /* Names and values are texts here; a NUL would end a text early. */
                if (in.failed || memchr(key, '\0', key_len) || memchr(value, '\0', value_len))
                        return -EPROTO;
                r = set_pmi_key(k, key, key_len, value, value_len);
        }
        return r;
}

void pmi_keys_finish(struct pmi_keys *k)
{
        struct pmi_key *e, *next;

        HASH_ITER(hh, k->by_name, e, next)
        {
                HASH_DEL(k->by_name, e);
                free(e->value);
                free(e);
        }
        buf_finish(&k->pending);
        *k = (struct pmi_keys)PMI_KEYS_INIT;
}
