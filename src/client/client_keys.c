/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client_keys: the public calls on keys and values of the store
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "client/core/last_error.h"
#include "client/process.h"

/* The parts of a call on one key; the request borrows from @name. */
struct key_call {
        struct process *process;
        char name[HN_KEY_MAX + 1];
        struct store_request req;
};

static hn_status full_key(const hn_store *store, const char *key, char *to)
{
        if (!store || !key || !*key)
                return set_error(HN_ERR_INVALID, "`store` and `key` must not be NULL or empty");
        if (strlen(store->prefix) + strlen(key) > HN_KEY_MAX)
                return set_error(HN_ERR_INVALID, "the key is longer than %d bytes", HN_KEY_MAX);
        stpcpy(stpcpy(to, store->prefix), key);
        return HN_OK;
}

static hn_status begin_key_call(struct key_call *c, enum store_op op, const hn_store *store,
                                const char *key, const void *value, size_t len)
{
        hn_status status;

        c->process = process_get();
        if (!c->process)
                return HN_ERR_NOT_LAUNCHED;
        status = full_key(store, key, c->name);
        if (status != HN_OK)
                return status;
        if (len > HN_VALUE_MAX || (len && !value))
                return set_error(HN_ERR_INVALID, "a value has at most %d bytes, not %zu",
                                 HN_VALUE_MAX, len);
        c->req = (struct store_request){ .op = (uint8_t)op,
                                         .key = bytes_of(c->name),
                                         .value = { value, len } };
        return HN_OK;
}

static hn_status send_key_call(struct key_call *c, int64_t timeout_ms, struct conn_answer *ret)
{
        return conn_call(c->process->conn, &c->req, timeout_ms, ret);
}

hn_status hn_store_set(hn_store *store, const char *key, const void *value, size_t len)
{
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_SET, store, key, value, len);

        return status == HN_OK ? send_key_call(&c, HN_DEFAULT_TIMEOUT, NULL) : status;
}

static hn_status get_value(hn_store *store, const char *key, int64_t timeout_ms,
                           struct conn_answer *ret)
{
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_GET, store, key, NULL, 0);

        if (status == HN_OK)
                status = send_key_call(&c, timeout_ms, ret);
        if (status == HN_ERR_TIMEOUT && timeout_ms == 0)
                return set_error(HN_ERR_NOT_FOUND, "there is no key `%s`", key);
        return status;
}

hn_status hn_store_get(hn_store *store, const char *key, void *buf, size_t *len, int64_t timeout_ms)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status;
        size_t size;

        if (!len || (*len && !buf))
                return set_error(HN_ERR_INVALID, "`len` and `buf` must not be NULL");
        status = get_value(store, key, timeout_ms, &a);
        if (status != HN_OK)
                return status;
        size = *len;
        *len = a.len;
        if (a.len > size)
                status = set_error(HN_ERR_TRUNCATED,
                                   "the value of `%s` has %zu bytes, the buffer %zu", key, a.len,
                                   size);
        else if (a.len)
                memcpy(buf, a.value, a.len);
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_get_alloc(hn_store *store, const char *key, void **value, size_t *len,
                             int64_t timeout_ms)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status;

        if (!value || !len)
                return set_error(HN_ERR_INVALID, "`value` and `len` must not be NULL");
        status = get_value(store, key, timeout_ms, &a);
        if (status != HN_OK)
                return status;
        *value = a.value;
        *len = a.len;
        return HN_OK;
}

void hn_free(void *memory)
{
        free(memory);
}

hn_status hn_store_add(hn_store *store, const char *key, int64_t delta, int64_t *now)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_ADD, store, key, NULL, 0);

        if (status != HN_OK)
                return status;
        c.req.number = delta;
        status = send_key_call(&c, HN_DEFAULT_TIMEOUT, &a);
        if (status == HN_OK && now)
                *now = a.number;
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_append(hn_store *store, const char *key, const void *value, size_t len)
{
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_APPEND, store, key, value, len);

        return status == HN_OK ? send_key_call(&c, HN_DEFAULT_TIMEOUT, NULL) : status;
}

hn_status hn_store_compare_set(hn_store *store, const char *key, const void *expected,
                               size_t expected_len, const void *desired, size_t desired_len,
                               int *swapped)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_COMPARE_SET, store, key, desired, desired_len);

        if (status != HN_OK)
                return status;
        /* Expected and new value travel in the same frame. */
        if (expected_len > HN_VALUE_MAX - desired_len / 2 || (expected_len && !expected))
                return set_error(HN_ERR_INVALID, "the expected value is NULL or too long");
        c.req.expect = (struct bytes){ expected, expected_len };
        status = send_key_call(&c, HN_DEFAULT_TIMEOUT, &a);
        if (status == HN_OK && swapped)
                *swapped = a.number == 1;
        conn_answer_finish(&a);
        return status;
}

static void free_keys(struct bytes *keys, size_t n)
{
        for (size_t i = 0; i < n && keys; i++)
                free((void *)keys[i].p);
        free(keys);
}

static hn_status full_keys(const hn_store *store, const char *const *keys, size_t n,
                           struct bytes **ret)
{
        struct bytes *full = n && n <= STORE_KEYS_MAX ? calloc(n, sizeof(*full)) : NULL;
        char name[HN_KEY_MAX + 1];
        hn_status status = HN_OK;

        if (!n || n > STORE_KEYS_MAX || !keys)
                return set_error(HN_ERR_INVALID, "the number of keys is 1 to %d", STORE_KEYS_MAX);
        for (size_t i = 0; i < n && full && status == HN_OK; i++) {
                status = full_key(store, keys[i], name);
                if (status == HN_OK)
                        full[i] = bytes_of(strdup(name));
                if (status == HN_OK && !full[i].p)
                        status = set_error(HN_ERR_NOMEM, "out of memory");
        }
        if (!full)
                return set_error(HN_ERR_NOMEM, "out of memory");
        if (status != HN_OK)
                free_keys(full, n);
        else
                *ret = full;
        return status;
}

static hn_status call_with_keys(enum store_op op, hn_store *store, const char *const *keys,
                                size_t n, int64_t timeout_ms, struct conn_answer *ret)
{
        struct process *process = process_get();
        struct store_request req = { .op = (uint8_t)op, .n_keys = (uint32_t)n };
        hn_status status = process ? full_keys(store, keys, n, &req.keys) : HN_ERR_NOT_LAUNCHED;

        if (status != HN_OK)
                return status;
        status = conn_call(process->conn, &req, timeout_ms, ret);
        free_keys(req.keys, n);
        return status;
}

hn_status hn_store_wait(hn_store *store, const char *const *keys, size_t n, int64_t timeout_ms)
{
        return call_with_keys(STORE_WAIT, store, keys, n, timeout_ms, NULL);
}

hn_status hn_store_check(hn_store *store, const char *const *keys, size_t n, int *all_present)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = call_with_keys(STORE_CHECK, store, keys, n, HN_DEFAULT_TIMEOUT, &a);

        if (status == HN_OK && all_present)
                *all_present = a.number != 0;
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_delete(hn_store *store, const char *key, int *existed)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        struct key_call c;
        hn_status status = begin_key_call(&c, STORE_DELETE, store, key, NULL, 0);

        if (status != HN_OK)
                return status;
        status = send_key_call(&c, HN_DEFAULT_TIMEOUT, &a);
        if (status == HN_OK && existed)
                *existed = a.number != 0;
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_num_keys(hn_store *store, size_t *n)
{
        struct process *process = process_get();
        struct conn_answer a = CONN_ANSWER_INIT;
        struct store_request req = { .op = STORE_NUM_KEYS };
        hn_status status;

        if (!process)
                return HN_ERR_NOT_LAUNCHED;
        if (!store || !n)
                return set_error(HN_ERR_INVALID, "`store` and `n` must not be NULL");
        req.key = bytes_of(store->prefix);
        status = conn_call(process->conn, &req, HN_DEFAULT_TIMEOUT, &a);
        if (status == HN_OK)
                *n = (size_t)a.number;
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_prefix(hn_store *store, const char *prefix, hn_store **out)
{
        hn_store *s;
        int n;

        if (!store || !prefix || !out)
                return set_error(HN_ERR_INVALID, "`store`, `prefix` and `out` must not be NULL");
        s = malloc(sizeof(*s));
        if (!s)
                return set_error(HN_ERR_NOMEM, "out of memory");
        n = snprintf(s->prefix, sizeof(s->prefix), "%s%s/", store->prefix, prefix);
        if (n < 0 || (size_t)n >= sizeof(s->prefix)) {
                free(s);
                return set_error(HN_ERR_INVALID, "the prefix is longer than %d bytes", HN_KEY_MAX);
        }
        *out = s;
        return HN_OK;
}
