/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags tell the answers of the store apart: LISTEN and POP for the queue of this node, and GET_BASE
 * plus the number of a request for the answer. SET, PUSH and DELETE are not waited for. While items
 * are left a POP is followed by another, else by the next WAIT at the queue.
 *
 * A request is three numbers: the asking node, the node's number for the request, the rank.
 * Requests under way here are kept in a list, so that the helper gets a number of ours.
 */
#include "agent/pmix/direct_modex.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"
#include "wire/codec.h"

enum {
        TAG_LISTEN = 1,
        TAG_POP = 2,
        TAG_IGNORED = 3,        /* at most this many are never in flight: see next_tag() */
        GET_BASE = 1 << 30,     /* tags from here on are numbers of requests of the helper */
        SUPPLIES_MAX = 1 << 16, /* a bound on what other nodes can make the agent keep */
        FAILED = -46,           /* PMIX_ERR_NOT_FOUND */
};

struct modex_supply {
        uint32_t id, node, their_id; /* ours, and what the answer is named by */
};

struct direct_modex {
        struct relay_client *client;
        struct direct_modex_ops ops;
        void *ctx;
        uint32_t node, last_id, last_tag;
        struct modex_supply *supplies; /* asked of us, without an answer */
        size_t n_supplies, cap;
};

static struct bytes bytes_in(const struct buf *b)
{
        return (struct bytes){ buf_data(b), buf_len(b) };
}

/* The queue of @node, with the requests of other nodes. */
static void put_queue_name(struct buf *b, uint32_t node)
{
        buf_append(b, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_printf(b, "modex/ask/%u", node);
}

/* The key of an answer. @node asks, and has named the request @id. */
static void put_answer_name(struct buf *b, uint32_t node, uint32_t id)
{
        buf_append(b, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_printf(b, "modex/data/%u/%u", node, id);
}

/* Returns a tag whose answer means nothing. */
static uint32_t next_tag(struct direct_modex *d)
{
        d->last_tag = d->last_tag + 1 < GET_BASE ? d->last_tag + 1 : TAG_IGNORED;
        return d->last_tag;
}

/* Sends a request for one key, and frees @key. WAIT takes a list of keys. */
static void send_modex_request(struct direct_modex *d, uint8_t op, uint32_t tag, struct buf *key,
                               struct bytes value)
{
        struct bytes keys[1] = { bytes_in(key) };
        struct store_request r = { .op = op, .tag = tag, .value = value };

        if (op == STORE_WAIT) {
                r.keys = keys;
                r.n_keys = 1;
        } else {
                r.key = keys[0];
        }
        relay_request(d->client, &r);
        buf_finish(key);
}

/* Sends a WAIT or POP at this node's queue. */
static void read_queue(struct direct_modex *d, uint8_t op, uint32_t tag)
{
        struct buf key = BUF_INIT;

        put_queue_name(&key, d->node);
        send_modex_request(d, op, tag, &key, (struct bytes){ 0 });
}

/* --- asked by another node -------------------------------------------------------------------- */

/* Takes a request of another node. The helper gets a number of this node, because numbers of
 * several nodes may be equal. */
static void take_wish(struct direct_modex *d, struct bytes item)
{
        struct reader in = READER_INIT(item.p, item.len);
        struct modex_supply s = { .node = take_u32(&in), .their_id = take_u32(&in) };
        uint32_t rank = take_u32(&in);

        /* A malformed request is dropped, and the other node waits until the attempt ends. */
        if (!take_done(&in) || d->n_supplies == SUPPLIES_MAX)
                return;
        s.id = ++d->last_id;
        d->supplies = xgrow(d->supplies, d->n_supplies, &d->cap, sizeof(s));
        d->supplies[d->n_supplies++] = s;
        d->ops.wanted(d->ctx, s.id, rank); /* may answer from inside */
}

void direct_modex_supply(struct direct_modex *d, uint32_t id, int32_t status, struct bytes data)
{
        CLEANUP(buf_finish) struct buf value = BUF_INIT;
        struct buf key = BUF_INIT;

        for (size_t i = 0; i < d->n_supplies; i++) {
                if (d->supplies[i].id != id)
                        continue;
                put_answer_name(&key, d->supplies[i].node, d->supplies[i].their_id);
                d->supplies[i] = d->supplies[--d->n_supplies];
                put_u32(&value, (uint32_t)status); /* the status is in front of the data */
                buf_append(&value, data.p, data.len);
                send_modex_request(d, STORE_SET, next_tag(d), &key, bytes_in(&value));
                return;
        }
}

/* --- asking ----------------------------------------------------------------------------------- */

void direct_modex_ask(struct direct_modex *d, uint32_t id, uint32_t node, uint32_t rank)
{
        CLEANUP(buf_finish) struct buf wish = BUF_INIT;
        struct buf key = BUF_INIT;

        put_u32(&wish, d->node);
        put_u32(&wish, id);
        put_u32(&wish, rank);
        put_queue_name(&key, node);
        /* The order of the two does not matter: the GET waits for the key. */
        send_modex_request(d, STORE_PUSH, next_tag(d), &key, bytes_in(&wish));
        put_answer_name(&key, d->node, id);
        send_modex_request(d, STORE_GET, GET_BASE + id % GET_BASE, &key, (struct bytes){ 0 });
}

static void take_modex_answer(struct direct_modex *d, uint32_t id, const struct store_reply *reply)
{
        struct reader in = READER_INIT(reply->value.p, reply->value.len);
        struct buf key = BUF_INIT;
        struct bytes data = { 0 };
        int32_t status;

        status = (int32_t)take_u32(&in);
        /* The store has given up, because a rank has failed. */
        if (reply->status != STORE_OK || in.failed)
                status = FAILED;
        else
                data.p = take_rest(&in, &data.len);
        d->ops.answered(d->ctx, id, status, data);
        if (reply->status != STORE_OK)
                /* No key to delete, as far as this node knows. */
                return;
        /* The answer is read once, and by no other rank. */
        put_answer_name(&key, d->node, id);
        send_modex_request(d, STORE_DELETE, next_tag(d), &key, (struct bytes){ 0 });
}

static void on_modex_reply(void *ctx, const struct store_reply *reply)
{
        struct direct_modex *d = ctx;

        if (reply->tag >= GET_BASE) {
                take_modex_answer(d, reply->tag - GET_BASE, reply);
        } else if (reply->tag == TAG_LISTEN && reply->status == STORE_OK) {
                read_queue(d, STORE_POP, TAG_POP);
        } else if (reply->tag == TAG_POP && reply->status == STORE_OK) {
                if (reply->number > 0) /* 0: the queue is empty */
                        take_wish(d, reply->value);
                /* The number includes the item, so 1 was the last. */
                read_queue(d, reply->number > 1 ? STORE_POP : STORE_WAIT,
                           reply->number > 1 ? TAG_POP : TAG_LISTEN);
        }
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct direct_modex *direct_modex_create(struct relay *relay, uint32_t node,
                                         struct direct_modex_ops ops, void *ctx)
{
        static const struct relay_client_ops client = { .reply = on_modex_reply, .is_relay = true };
        struct direct_modex *d = xcalloc(1, sizeof(*d));

        *d = (struct direct_modex){ .node = node, .ops = ops, .ctx = ctx, .last_tag = TAG_IGNORED };
        d->client = relay_client_create(relay, client, d);
        if (!d->client) {
                free(d);
                return NULL;
        }
        read_queue(d, STORE_WAIT, TAG_LISTEN);
        return d;
}

void direct_modex_destroy(struct direct_modex *d)
{
        if (!d)
                return;
        relay_client_destroy(d->client);
        free(d->supplies);
        free(d);
}
