/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client_keys: the public calls on keys and values of the store
 *
 * A key travels with the prefix of the store in front, so a store is a name and needs no message
 * of its own. Each call is a single request: call_key() for one key, call_with_keys() for a list.
 * The connection allocates the value of an answer; the calls here copy the value to the caller's
 * buffer or hand it over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "client/core/last_error.h"
#include "client/process.h"

/* Writes prefix and key to @to, which has HN_KEY_MAX + 1 bytes. */
static hn_status full_key(const hn_store *store, const char *key, char *to)
{
        if (!store || !key || !*key)
                return set_error(HN_ERR_INVALID, "`store` and `key` must not be NULL or empty");
        if (strlen(store->prefix) + strlen(key) > HN_KEY_MAX)
                return set_error(HN_ERR_INVALID, "the key is longer than %d bytes", HN_KEY_MAX);
        stpcpy(stpcpy(to, store->prefix), key);
        return HN_OK;
}

/* Completes @req, which has op and values, with the whole key and sends it. */
static hn_status call_key(const hn_store *store, const char *key, struct store_request *req,
                          int64_t timeout_ms, struct conn_answer *ret)
{
        struct process *process = process_get();
        char name[HN_KEY_MAX + 1];
        hn_status status = process ? full_key(store, key, name) : HN_ERR_NOT_LAUNCHED;

        if (status != HN_OK)
                return status;
        if (req->value.len > HN_VALUE_MAX || (req->value.len && !req->value.p))
                return set_error(HN_ERR_INVALID, "a value has at most %d bytes, not %zu",
                                 HN_VALUE_MAX, req->value.len);
        /* Expected and new value travel in the same frame. */
        if (req->expect.len > HN_VALUE_MAX - req->value.len / 2 ||
            (req->expect.len && !req->expect.p))
                return set_error(HN_ERR_INVALID, "the expected value is NULL or too long");
        req->key = bytes_of(name);
        return conn_call(process->conn, req, timeout_ms, ret);
}

/* The same for a request that is answered at once with a number, @ret. */
static hn_status call_key_number(const hn_store *store, const char *key, struct store_request *req,
                                 int64_t *ret)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status = call_key(store, key, req, HN_DEFAULT_TIMEOUT, &a);

        *ret = a.number; /* 0 on failure: callers look at the status first */
        conn_answer_finish(&a);
        return status;
}

hn_status hn_store_set(hn_store *store, const char *key, const void *value, size_t len)
{
        struct store_request req = { .op = STORE_SET, .value = { value, len } };

        return call_key(store, key, &req, HN_DEFAULT_TIMEOUT, NULL);
}

/* Without waiting, a missing key is HN_ERR_NOT_FOUND, not a timeout. */
static hn_status get_value(hn_store *store, const char *key, int64_t timeout_ms,
                           struct conn_answer *ret)
{
        struct store_request req = { .op = STORE_GET };
        hn_status status = call_key(store, key, &req, timeout_ms, ret);

        if (status == HN_ERR_TIMEOUT && timeout_ms == 0)
                return set_error(HN_ERR_NOT_FOUND, "there is no key `%s`", key);
        return status;
}

hn_status hn_store_get(hn_store *store, const char *key, void *buf, size_t *len, int64_t timeout_ms)
{
        struct conn_answer a = CONN_ANSWER_INIT;
        hn_status status;
        size_t size;

        /* A buffer of 0 bytes asks for the size alone. */
        if (!len || (*len && !buf))
                return set_error(HN_ERR_INVALID, "`len` and `buf` must not be NULL");
        status = get_value(store, key, timeout_ms, &a);
        if (status != HN_OK)
                return status;
        size = *len;
        *len = a.len; /* the whole size, also with HN_ERR_TRUNCATED */
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
        *value = a.value; /* malloc'ed; the caller frees it with hn_free() */
        *len = a.len;
        return HN_OK;
}

void hn_free(void *memory)
{
        free(memory);
}

hn_status hn_store_add(hn_store *store, const char *key, int64_t delta, int64_t *now)
{
        struct store_request req = { .op = STORE_ADD, .number = delta };
        int64_t sum;
        hn_status status = call_key_number(store, key, &req, &sum);

        if (status == HN_OK && now)
                *now = sum;
        return status;
}

hn_status hn_store_append(hn_store *store, const char *key, const void *value, size_t len)
{
        struct store_request req = { .op = STORE_APPEND, .value = { value, len } };

        return call_key(store, key, &req, HN_DEFAULT_TIMEOUT, NULL);
}

hn_status hn_store_compare_set(hn_store *store, const char *key, const void *expected,
                               size_t expected_len, const void *desired, size_t desired_len,
                               int *swapped)
{
        struct store_request req = { .op = STORE_COMPARE_SET,
                                     .value = { desired, desired_len },
                                     .expect = { expected, expected_len } };
        int64_t result;
        /* 1: swapped, 0: another value, -1: no value. */
        hn_status status = call_key_number(store, key, &req, &result);

        if (status == HN_OK && swapped)
                *swapped = result == 1;
        return status;
}

/* Sends a request with several keys, each with the prefix of the store in front. */
static hn_status call_with_keys(enum store_op op, hn_store *store, const char *const *keys,
                                size_t n, int64_t timeout_ms, struct conn_answer *ret)
{
        struct process *process = process_get();
        struct store_request req = { .op = (uint8_t)op };
        char name[HN_KEY_MAX + 1];
        hn_status status = HN_OK;

        if (!process)
                return HN_ERR_NOT_LAUNCHED;
        if (!n || n > STORE_KEYS_MAX || !keys)
                return set_error(HN_ERR_INVALID, "the number of keys is 1 to %d", STORE_KEYS_MAX);
        req.keys = calloc(n, sizeof(*req.keys));
        if (!req.keys)
                return set_error(HN_ERR_NOMEM, "out of memory");
        /* n_keys counts the copies made, which are freed below in any case. */
        while (req.n_keys < n && status == HN_OK) {
                status = full_key(store, keys[req.n_keys], name);
                if (status != HN_OK)
                        break;
                req.keys[req.n_keys] = bytes_of(strdup(name));
                if (!req.keys[req.n_keys++].p)
                        status = set_error(HN_ERR_NOMEM, "out of memory");
        }
        if (status == HN_OK)
                status = conn_call(process->conn, &req, timeout_ms, ret);
        for (size_t i = 0; i < req.n_keys; i++)
                free((void *)req.keys[i].p);
        free(req.keys);
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
        struct store_request req = { .op = STORE_DELETE };
        int64_t number;
        hn_status status = call_key_number(store, key, &req, &number);

        if (status == HN_OK && existed)
                *existed = number != 0;
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
        req.key = bytes_of(store->prefix); /* "" counts all keys */
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
        /* A new handle, without a message: a prefix is part of the key's name. */
        n = snprintf(s->prefix, sizeof(s->prefix), "%s%s/", store->prefix, prefix);
        if (n < 0 || (size_t)n >= sizeof(s->prefix)) {
                free(s);
                return set_error(HN_ERR_INVALID, "the prefix is longer than %d bytes", HN_KEY_MAX);
        }
        *out = s;
        return HN_OK;
}
