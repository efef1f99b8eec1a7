/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lists are kept with the body of their first request, whose bytes the decoded keys point
 * into. A request is compared with the kept bodies, not decoded: memcmp(3) of a list is much faster
 * than an array of pointers to its keys. A new list takes the place of the oldest.
 */
#include "wire/store_keys.h"

#include <string.h>

/* Shorter lists are decoded faster than found; longer lists are not worth the memory. */
enum { LIST_MIN = 256, LIST_MAX = 1 << 20 };

/* Only requests that all nodes send with equal keys are worth a place. */
static bool is_long_list(struct store_head h, size_t len)
{
        return (h.op == STORE_WAIT || h.op == STORE_FETCH) && len >= LIST_MIN && len <= LIST_MAX;
}

/* keys_id 0 makes store_request_finish() free the keys, which are the list's own. */
static void forget_key_list(struct store_list *l)
{
        l->decoded.keys_id = 0;
        store_request_finish(&l->decoded);
        buf_finish(&l->body);
}

/* Decodes and stores a list in the place of the oldest. NULL: malformed, or no memory. */
static struct store_list *keep_key_list(struct store_keys *k, const void *body, size_t len)
{
        struct store_list *l = &k->lists[k->next];

        k->next = (k->next + 1) % STORE_LISTS_KEPT;
        forget_key_list(l);
        if (buf_append(&l->body, body, len) < 0 ||
            store_request_decode(&l->decoded, buf_data(&l->body), len, NULL) < 0) {
                buf_finish(&l->body);
                return NULL;
        }
        /* Numbers are never used again, so a place with a new list has another id. */
        l->decoded.keys_id = ++k->last_id;
        return l;
}

/* The header with client, operation and tag differs from request to request, and is left out. */
static struct store_list *find_key_list(struct store_keys *k, const unsigned char *body, size_t len)
{
        for (struct store_list *l = k->lists; l < k->lists + STORE_LISTS_KEPT; l++)
                if (buf_len(&l->body) == len &&
                    memcmp(buf_data(&l->body) + STORE_BODY_HEADER, body + STORE_BODY_HEADER,
                           len - STORE_BODY_HEADER) == 0)
                        return l;
        return NULL;
}

int store_keys_decode(struct store_keys *k, struct store_request *m, const void *body, size_t len,
                      struct error *err)
{
        struct store_head h = store_body_head(body, len);
        struct store_list *l = NULL;

        if (is_long_list(h, len))
                l = find_key_list(k, body, len);
        if (!l && is_long_list(h, len))
                l = keep_key_list(k, body, len);
        if (!l)
                return store_request_decode(m, body, len, err);
        /* The keys are lent. WAIT and FETCH have the same fields, so a list of one serves the
         * other. */
        *m = l->decoded;
        m->client = h.client;
        m->op = h.op;
        m->tag = h.tag;
        return 0;
}

void store_keys_finish(struct store_keys *k)
{
        for (int i = 0; i < STORE_LISTS_KEPT; i++)
                forget_key_list(&k->lists[i]);
}
