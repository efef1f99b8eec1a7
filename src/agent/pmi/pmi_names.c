/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "agent/pmi/pmi_private.h"
#include "base/macros.h"
#include "base/memory.h"
#include "wire/codec.h"

/* Tags are indices of ranks: each has at most one request. */
static void on_name_reply(void *ctx, const struct store_reply *reply)
{
        struct reader in = READER_INIT(reply->value.p, reply->value.len);
        CLEANUP(free_textp) char *port = NULL;
        struct pmi *p = ctx;
        struct pmi_rank *r = &p->ranks[reply->tag];
        bool good = reply->status == STORE_OK && (r->asked == STORE_SET || reply->number == 1);

        if (r->wait != PMI_WAIT_NAME)
                return;
        r->wait = PMI_WAIT_NONE;
        if (good && r->asked == STORE_FETCH) {
                uint64_t len = take_u64(&in);
                const char *value = (const char *)take_raw(&in, len);

                port = value ? xstrndup(value, len) : NULL;
                good = port && !strpbrk(port, "\n\\");
        }
        if (r->state == PMI_READY1)
                pmi1_tell_name(r, good, port);
        else if (r->state == PMI_READY2)
                pmi2_tell_name(r, good, port);
}

void pmi_ask_name(struct pmi_rank *r, uint8_t op, const char *name, const char *port)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT;
        struct store_request req = { .op = op, .tag = r->index, .value = bytes_of(port) };
        struct bytes key;

        buf_append(&text, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_printf(&text, "name/%.*s", STORE_KEY_MAX / 2, name);
        key = (struct bytes){ buf_data(&text), buf_len(&text) };
        req.key = key;
        req.keys = &key;
        req.n_keys = 1;
        r->asked = op;
        r->wait = PMI_WAIT_NAME;
        relay_request(r->pmi->names, &req);
}

struct relay_client *pmi_names_create(struct pmi *p)
{
        static const struct relay_client_ops ops = { .reply = on_name_reply, .is_relay = true };

        return relay_client_create(p->relay, ops, p);
}
