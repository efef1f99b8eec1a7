/* SPDX-License-Identifier: Apache-2.0 */
#include "store/relay/chunked_fetch.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/macros.h"

enum { PULL_MAX = 256 << 20 };

struct pull {
        struct buf value;
        struct store_request all; /* borrows from the body */
        uint32_t at, n;           /* the part that is on its way */
        int64_t found;
};

static struct pull *pull_create(const void *body, size_t len)
{
        struct pull *p = calloc(1, sizeof(*p));

        if (p && store_request_decode(&p->all, body, len, NULL) == 0) {
                p->n = p->all.n_keys;
                return p;
        }
        free(p);
        return NULL;
}

/* False: that was one key, or there is no memory. */
static bool halve(struct pull **pull, const void *body, size_t len)
{
        if (!*pull)
                *pull = pull_create(body, len);
        if (!*pull || (*pull)->n < 2)
                return false;
        (*pull)->n /= 2;
        return true;
}

static bool append(struct pull *p, const struct store_reply *part)
{
        p->found += part->number;
        p->at += p->n;
        p->n = MIN(p->n, p->all.n_keys - p->at);
        return buf_len(&p->value) + part->value.len <= PULL_MAX &&
               buf_append(&p->value, part->value.p, part->value.len) == 0;
}

bool pull_take(struct pull **pull, const void *body, size_t len, struct store_reply *reply)
{
        struct pull *p = *pull;

        if (reply->status == STORE_TOO_BIG)
                return halve(pull, body, len);
        if (!p || reply->status != STORE_OK)
                return false;
        if (!append(p, reply)) {
                *reply = (struct store_reply){ .status = STORE_TOO_BIG,
                                               .text = bytes_of("the answer is too large") };
                return false;
        }
        reply->number = p->found;
        reply->value = (struct bytes){ buf_data(&p->value), buf_len(&p->value) };
        return p->at < p->all.n_keys;
}

struct store_request pull_part(const struct pull *p)
{
        return (struct store_request){ .op = STORE_FETCH,
                                       .keys = p->all.keys + p->at,
                                       .n_keys = p->n };
}

void pull_destroy(struct pull *p)
{
        if (!p)
                return;
        store_request_finish(&p->all);
        buf_finish(&p->value);
        free(p);
}
