/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table `ops` has the fields of every request as bits; encoder and decoder visit all fields in
 * one fixed order and skip those without a bit. Decoded strings are borrowed from the body. Arrays
 * of keys, values and ranks are allocated, after their count was compared with the bytes left; keys
 * with a keys_id are borrowed from store_keys.c and not freed here. A reply can be encoded in two
 * parts, head and value, so that the bytes of a large value need not pass through the same buffer.
 */
#include "wire/store_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "wire/codec.h"

enum field {
        F_KEY = 1 << 0,
        F_VALUE = 1 << 1,
        F_EXPECT = 1 << 2,
        F_NUMBER = 1 << 3,
        F_TOTAL = 1 << 4,
        F_ROOT = 1 << 5,
        F_TEXT = 1 << 6,
        F_KEYS = 1 << 7,
        F_MEMBERS = 1 << 8,
        F_VALUES = 1 << 9,
        F_RANKS = 1 << 10,
        F_SILENT = 1 << 14, /* no answer */
        F_MEETING = F_KEY | F_MEMBERS | F_RANKS,
        F_KNOWN = 1 << 15,
};

/* Encoder and decoder both read this table, so they cannot disagree. */
static const struct {
        const char *name;
        unsigned fields;
} ops[] = {
        [STORE_HELLO] = { "HELLO", F_KNOWN | F_NUMBER },
        [STORE_SET] = { "SET", F_KNOWN | F_KEY | F_VALUE },
        [STORE_ADD] = { "ADD", F_KNOWN | F_KEY | F_NUMBER },
        [STORE_APPEND] = { "APPEND", F_KNOWN | F_KEY | F_VALUE },
        [STORE_COMPARE_SET] = { "COMPARE_SET", F_KNOWN | F_KEY | F_EXPECT | F_VALUE },
        [STORE_CHECK] = { "CHECK", F_KNOWN | F_KEYS },
        [STORE_DELETE] = { "DELETE", F_KNOWN | F_KEY },
        [STORE_NUM_KEYS] = { "NUM_KEYS", F_KNOWN | F_KEY },
        [STORE_TOPOLOGY] = { "TOPOLOGY", F_KNOWN },
        [STORE_ABORT] = { "ABORT", F_KNOWN | F_NUMBER | F_TEXT },
        [STORE_GET] = { "GET", F_KNOWN | F_KEY },
        [STORE_WAIT] = { "WAIT", F_KNOWN | F_KEYS },
        [STORE_BARRIER] = { "BARRIER", F_KNOWN | F_MEETING },
        [STORE_GATHER] = { "GATHER", F_KNOWN | F_MEETING | F_VALUE },
        [STORE_BROADCAST] = { "BROADCAST", F_KNOWN | F_MEETING | F_VALUE | F_ROOT },
        [STORE_CANCEL] = { "CANCEL", F_KNOWN | F_SILENT },
        [STORE_REPORT_ERROR] = { "REPORT_ERROR", F_KNOWN | F_SILENT | F_KEY | F_TEXT },
        [STORE_PROGRESS] = { "PROGRESS", F_KNOWN | F_SILENT | F_NUMBER | F_TOTAL | F_TEXT },
        [STORE_FETCH] = { "FETCH", F_KNOWN | F_KEYS },
        [STORE_SET_MANY] = { "SET_MANY", F_KNOWN | F_KEYS | F_VALUES },
        [STORE_PUSH] = { "PUSH", F_KNOWN | F_KEY | F_VALUE },
        [STORE_POP] = { "POP", F_KNOWN | F_KEY },
        [STORE_QUEUE_LEN] = { "QUEUE_LEN", F_KNOWN | F_KEY },
        [STORE_LIST] = { "LIST", F_KNOWN },
        [STORE_COUNT] = { "COUNT", F_KNOWN | F_KEY | F_NUMBER | F_TOTAL },
        [STORE_JOIN] = { "JOIN", F_KNOWN | F_SILENT },
        [STORE_LEAVE] = { "LEAVE", F_KNOWN | F_SILENT | F_NUMBER | F_RANKS },
        [STORE_GONE] = { "GONE", F_KNOWN | F_SILENT },
};

static unsigned fields_of(uint8_t op)
{
        return op < ARRAY_SIZE(ops) ? ops[op].fields : 0;
}

const char *store_op_name(uint8_t op)
{
        return fields_of(op) ? ops[op].name : "?";
}

bool store_op_has_answer(uint8_t op)
{
        return fields_of(op) && !(fields_of(op) & F_SILENT);
}

struct bytes bytes_of(const char *text)
{
        return (struct bytes){ text, text ? strlen(text) : 0 };
}

static void put_head(struct buf *b, uint32_t client, uint8_t op, uint32_t tag)
{
        put_u32(b, client);
        put_u8(b, op);
        put_u32(b, tag);
}

struct store_head store_body_head(const void *body, size_t len)
{
        struct reader r = READER_INIT(body, len);
        struct store_head h = { 0 };

        h.client = take_u32(&r);
        h.op = take_u8(&r);
        h.tag = take_u32(&r);
        return r.failed ? (struct store_head){ 0 } : h;
}

void store_body_set_client(void *body, uint32_t client)
{
        unsigned char *p = body;

        for (int i = 0; i < 4; i++)
                p[i] = (unsigned char)(client >> (8 * i));
}

static void put_ranks(struct buf *b, const uint32_t *ranks, uint32_t n)
{
        put_u32(b, n);
        for (uint32_t i = 0; i < n; i++)
                put_u32(b, ranks[i]);
}

/* The count is checked against the bytes left, so a false count costs no memory. */
static int take_ranks(struct reader *r, uint32_t **ret, uint32_t *ret_n)
{
        uint32_t n = take_u32(r);

        if (n > STORE_MEMBERS_MAX || n > r->left / 4)
                r->failed = true;
        if (r->failed || n == 0)
                return 0;
        *ret = malloc(n * sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                (*ret)[i] = take_u32(r);
        *ret_n = n;
        return 0;
}

static struct bytes take_limited(struct reader *r, size_t max)
{
        struct bytes b = { 0 };

        b.p = take_bytes(r, max, &b.len);
        if (!b.p)
                b.len = 0;
        return b;
}

static int take_keys(struct reader *r, struct store_request *m)
{
        uint32_t n = take_u32(r);

        if (n > STORE_KEYS_MAX || n > r->left / 4)
                r->failed = true;
        if (r->failed || n == 0)
                return 0;
        m->keys = calloc(n, sizeof(*m->keys));
        if (!m->keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                m->keys[i] = take_limited(r, STORE_KEY_MAX);
        m->n_keys = n;
        return 0;
}

static int take_values(struct reader *r, struct store_request *m)
{
        if (r->failed || m->n_keys == 0)
                return 0;
        m->values = calloc(m->n_keys, sizeof(*m->values));
        if (!m->values)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_keys; i++)
                m->values[i] = take_limited(r, STORE_VALUE_MAX);
        return 0;
}

void store_request_encode(struct buf *b, const struct store_request *m)
{
        unsigned f = fields_of(m->op);

        put_head(b, m->client, m->op, m->tag);
        if (f & F_KEY)
                put_bytes(b, m->key.p, m->key.len);
        if (f & F_NUMBER)
                put_u64(b, (uint64_t)m->number);
        if (f & F_TOTAL)
                put_u64(b, (uint64_t)m->total);
        if (f & F_ROOT)
                put_u32(b, m->root);
        if (f & F_MEMBERS)
                put_ranks(b, m->members, m->n_members);
        if (f & F_RANKS)
                put_ranks(b, m->ranks, m->n_ranks);
        if (f & F_KEYS) {
                put_u32(b, m->n_keys);
                for (uint32_t i = 0; i < m->n_keys; i++)
                        put_bytes(b, m->keys[i].p, m->keys[i].len);
        }
        if (f & F_VALUES)
                for (uint32_t i = 0; i < m->n_keys; i++)
                        put_bytes(b, m->values[i].p, m->values[i].len);
        if (f & F_EXPECT)
                put_bytes(b, m->expect.p, m->expect.len);
        if (f & F_VALUE)
                put_bytes(b, m->value.p, m->value.len);
        if (f & F_TEXT)
                put_bytes(b, m->text.p, m->text.len);
}

static int take_request_fields(struct reader *r, unsigned f, struct store_request *m)
{
        int ret = 0;

        if (f & F_KEY)
                m->key = take_limited(r, STORE_KEY_MAX);
        if (f & F_NUMBER)
                m->number = (int64_t)take_u64(r);
        if (f & F_TOTAL)
                m->total = (int64_t)take_u64(r);
        if (f & F_ROOT)
                m->root = take_u32(r);
        if (f & F_MEMBERS)
                ret = take_ranks(r, &m->members, &m->n_members);
        if (ret == 0 && (f & F_RANKS))
                ret = take_ranks(r, &m->ranks, &m->n_ranks);
        if (ret == 0 && (f & F_KEYS))
                ret = take_keys(r, m);
        if (ret == 0 && (f & F_VALUES))
                ret = take_values(r, m);
        if (f & F_EXPECT)
                m->expect = take_limited(r, STORE_VALUE_MAX);
        if (f & F_VALUE)
                m->value = take_limited(r, STORE_VALUE_MAX);
        if (f & F_TEXT)
                m->text = take_limited(r, STORE_TEXT_MAX);
        return ret;
}

int store_request_decode(struct store_request *m, const void *body, size_t len, struct error *err)
{
        struct reader r = READER_INIT(body, len);
        struct store_request got = { 0 };
        int ret;

        got.client = take_u32(&r);
        got.op = take_u8(&r);
        got.tag = take_u32(&r);
        if (r.failed || !fields_of(got.op))
                return err_set(err, EPROTO, "unknown store request %u", got.op);
        ret = take_request_fields(&r, fields_of(got.op), &got);
        if (ret == 0 && take_done(&r)) {
                *m = got;
                return 0;
        }
        store_request_finish(&got);
        return ret < 0 ? err_set(err, -ret, "out of memory")
                       : err_set(err, EPROTO, "malformed store request %s", store_op_name(got.op));
}

void store_request_finish(struct store_request *m)
{
        if (!m->keys_id)
                free(m->keys);
        free(m->values);
        free(m->members);
        free(m->ranks);
        m->keys = m->values = NULL;
        m->members = m->ranks = NULL;
        m->n_keys = m->n_members = m->n_ranks = 0;
        m->keys_id = 0;
}

size_t store_reply_value_len(const struct store_reply *m)
{
        size_t len = m->value.len;

        for (uint32_t i = 0; i < m->n_parts; i++)
                len += sizeof(uint64_t) + m->parts[i].len;
        return len;
}

void store_reply_encode_value(struct buf *b, const struct store_reply *m)
{
        (void)buf_reserve(b, store_reply_value_len(m)); /* at once, not by doubling */
        buf_append(b, m->value.p, m->value.len);
        for (uint32_t i = 0; i < m->n_parts; i++) {
                put_u64(b, m->parts[i].len);
                buf_append(b, m->parts[i].p, m->parts[i].len);
        }
}

void store_reply_encode_head(struct buf *b, const struct store_reply *m)
{
        put_head(b, m->client, STORE_REPLY, m->tag);
        put_u8(b, m->status);
        put_u64(b, (uint64_t)m->number);
        put_ranks(b, m->ranks, m->n_ranks);
        put_ranks(b, m->whom, m->n_whom);
        put_bytes(b, m->text.p, m->text.len);
        put_u32(b, (uint32_t)store_reply_value_len(m));
}

void store_reply_encode(struct buf *b, const struct store_reply *m)
{
        store_reply_encode_head(b, m);
        store_reply_encode_value(b, m);
}

int store_reply_decode(struct store_reply *m, const void *body, size_t len, struct error *err)
{
        struct reader r = READER_INIT(body, len);
        struct store_reply got = { 0 };
        uint8_t op;
        int ret;

        got.client = take_u32(&r);
        op = take_u8(&r);
        got.tag = take_u32(&r);
        got.status = take_u8(&r);
        got.number = (int64_t)take_u64(&r);
        ret = take_ranks(&r, &got.ranks, &got.n_ranks);
        if (ret == 0)
                ret = take_ranks(&r, &got.whom, &got.n_whom);
        got.text = take_limited(&r, STORE_TEXT_MAX);
        got.value = take_limited(&r, STORE_ANSWER_MAX);
        if (ret == 0 && take_done(&r) && op == STORE_REPLY && got.status < STORE_STATUSES) {
                *m = got;
                return 0;
        }
        store_reply_finish(&got);
        return ret < 0 ? err_set(err, -ret, "out of memory")
                       : err_set(err, EPROTO, "malformed reply from the store");
}

void store_reply_finish(struct store_reply *m)
{
        free(m->ranks);
        free(m->whom);
        m->ranks = m->whom = NULL;
        m->n_ranks = m->n_whom = 0;
}

void store_news_encode(struct buf *b, const struct store_news *m)
{
        put_head(b, m->client, STORE_NEWS, 0);
        put_u8(b, m->kind);
        put_u32(b, (uint32_t)m->rank);
        put_u32(b, (uint32_t)m->node);
        put_bytes(b, m->text.p, m->text.len);
}

int store_news_decode(struct store_news *m, const void *body, size_t len, struct error *err)
{
        struct reader r = READER_INIT(body, len);
        struct store_news got = { 0 };
        uint8_t op;

        got.client = take_u32(&r);
        op = take_u8(&r);
        (void)take_u32(&r);
        got.kind = take_u8(&r);
        got.rank = (int32_t)take_u32(&r);
        got.node = (int32_t)take_u32(&r);
        got.text = take_limited(&r, STORE_TEXT_MAX);
        if (!take_done(&r) || op != STORE_NEWS)
                return err_set(err, EPROTO, "malformed news");
        *m = got;
        return 0;
}

void topology_encode(struct buf *b, const struct topology *t)
{
        put_u32(b, t->n_nodes);
        for (uint32_t i = 0; i < t->n_nodes; i++)
                put_str(b, t->hosts[i]);
        put_ranks(b, t->node_of_rank, t->world_size);
}

int topology_decode(struct topology *t, const void *p, size_t len, struct error *err)
{
        struct reader r = READER_INIT(p, len);
        struct topology got = { 0 };
        uint32_t n = take_u32(&r);
        int ret = 0;

        if (n > STORE_MEMBERS_MAX || n > r.left / 4)
                return err_set(err, EPROTO, "malformed topology");
        got.hosts = calloc(n + 1, sizeof(*got.hosts));
        if (!got.hosts)
                return err_set(err, ENOMEM, "out of memory");
        for (got.n_nodes = 0; got.n_nodes < n && !r.failed; got.n_nodes++)
                got.hosts[got.n_nodes] = take_str(&r, STORE_KEY_MAX);
        ret = take_ranks(&r, &got.node_of_rank, &got.world_size);
        for (uint32_t i = 0; i < got.world_size; i++)
                r.failed |= got.node_of_rank[i] >= n;
        if (ret < 0 || !take_done(&r)) {
                topology_finish(&got);
                return err_set(err, ret < 0 ? -ret : EPROTO, "malformed topology");
        }
        *t = got;
        return 0;
}

void topology_finish(struct topology *t)
{
        for (uint32_t i = 0; i < t->n_nodes; i++)
                free(t->hosts[i]);
        free(t->hosts);
        free(t->node_of_rank);
        *t = (struct topology){ 0 };
}
