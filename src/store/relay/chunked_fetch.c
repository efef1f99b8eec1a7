/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FETCH whose answer is too large for a message is asked again for half of the keys, until the
 * answer fits, and then part by part; the client gets one answer. The size of parts only falls.
 */
#include "store/relay/chunked_fetch.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/macros.h"

enum { FETCH_MAX = 256 << 20 };

struct chunked_fetch {
        struct buf value;
        struct store_request all; /* borrows from the body */
        uint32_t at, n;           /* the part on its way: @n keys from @at */
        int64_t found;
};

bool chunked_fetch_take(struct chunked_fetch **fetch, const void *body, size_t len,
                        struct store_reply *reply)
{
        struct chunked_fetch *p = *fetch;

        /* The first refusal. Without memory the client gets this refusal as the answer. */
        if (reply->status == STORE_TOO_BIG && !p) {
                p = calloc(1, sizeof(*p));
                if (!p || store_request_decode(&p->all, body, len, NULL) < 0) {
                        free(p);
                        return false;
                }
                p->n = p->all.n_keys;
                *fetch = p;
        }
        if (reply->status == STORE_TOO_BIG && p->n > 1) {
                p->n /= 2;
                return true;
        }
        if (reply->status != STORE_OK || !p)
                return false;
        /* The number counts the keys found, so more than were asked for cannot be right. */
        if (reply->number < 0 || reply->number > p->n) {
                *reply = (struct store_reply){ .status = STORE_INVALID,
                                               .text = bytes_of("malformed answer of the store") };
                return false;
        }
        if (buf_len(&p->value) + reply->value.len > FETCH_MAX ||
            buf_append(&p->value, reply->value.p, reply->value.len) < 0) {
                *reply = (struct store_reply){ .status = STORE_TOO_BIG,
                                               .text = bytes_of("the answer is too large") };
                return false;
        }
        p->found += reply->number;
        p->at += p->n;
        p->n = MIN(p->n, p->all.n_keys - p->at);
        reply->number = p->found;
        reply->value = (struct bytes){ buf_data(&p->value), buf_len(&p->value) };
        return p->at < p->all.n_keys;
}

struct store_request chunked_fetch_part(const struct chunked_fetch *p)
{
        return (struct store_request){ .op = STORE_FETCH,
                                       .keys = p->all.keys + p->at,
                                       .n_keys = p->n };
}

void chunked_fetch_destroy(struct chunked_fetch *p)
{
        if (!p)
                return;
        store_request_finish(&p->all);
        buf_finish(&p->value);
        free(p);
}
