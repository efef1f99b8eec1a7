/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table `ops` has the fields of every request as bits; code_request_fields() visits them in one
 * fixed order and skips those without a bit, to encode and to decode. Decoded strings are borrowed
 * from the body. Arrays of keys, values and ranks are allocated, after their count was compared
 * with the bytes left; keys with a keys_id are borrowed from store_keys.c and not freed here. A
 * reply can be encoded in two parts, head and value, so that the bytes of a large value need not
 * pass through the same buffer.
 */
#include "wire/store_msg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "wire/codec.h"

/* A bit for each field, in the order of code_request_fields(). F_KNOWN marks a row of the table: an
 * operation without fields must not look like a gap. */
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
        [STORE_DRAINED] = { "DRAINED", F_KNOWN },
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

/* 0 = there is no such operation. */
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

bool store_key_is_own(struct bytes key)
{
        return key.len >= STORE_OWN_PREFIX_LEN &&
               memcmp(key.p, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN) == 0;
}

/* All zeros: the body is too short. 0 is no operation. */
struct store_head store_body_head(const void *body, size_t len)
{
        struct reader r = READER_INIT(body, len);
        struct store_head h = { 0 };

        h.client = take_u32(&r);
        h.op = take_u8(&r);
        h.tag = take_u32(&r);
        return r.failed ? (struct store_head){ 0 } : h;
}

static void code_head(struct codec *c, uint32_t *client, uint8_t *op, uint32_t *tag)
{
        codec_u32(c, client);
        codec_u8(c, op);
        codec_u32(c, tag);
}

/* Lends the bytes of the body, and frees nothing. */
static void code_bytes(struct codec *c, struct bytes *b, size_t max)
{
        if (c->op == CODEC_ENCODE)
                put_bytes(c->out, b->p, b->len);
        else if (c->op == CODEC_DECODE)
                b->p = take_bytes(&c->in, max, &b->len);
}

static void code_key(struct codec *c, struct bytes *key)
{
        code_bytes(c, key, STORE_KEY_MAX);
}

/* As many values as keys. */
static void code_values(struct codec *c, struct store_request *m)
{
        if (c->op == CODEC_DECODE && m->n_keys) {
                m->values = calloc(m->n_keys, sizeof(*m->values));
                c->no_memory = !m->values;
                codec_require(c, m->values);
        }
        for (uint32_t i = 0; i < m->n_keys && !c->in.failed; i++)
                code_bytes(c, &m->values[i], STORE_VALUE_MAX);
}

/* Visits the fields of the operation. Signed numbers travel in two's complement. */
static void code_request_fields(struct codec *c, struct store_request *m)
{
        unsigned f = fields_of(m->op);

        if (f & F_KEY)
                code_key(c, &m->key);
        if (f & F_NUMBER)
                codec_u64(c, (uint64_t *)&m->number);
        if (f & F_TOTAL)
                codec_u64(c, (uint64_t *)&m->total);
        if (f & F_ROOT)
                codec_u32(c, &m->root);
        if (f & F_MEMBERS)
                codec_u32_array(c, &m->members, &m->n_members, STORE_MEMBERS_MAX);
        if (f & F_RANKS)
                codec_u32_array(c, &m->ranks, &m->n_ranks, STORE_MEMBERS_MAX);
        if (f & F_KEYS)
                CODEC_ARRAY(c, m->keys, m->n_keys, STORE_KEYS_MAX, code_key);
        if (f & F_VALUES)
                code_values(c, m);
        if (f & F_EXPECT)
                code_bytes(c, &m->expect, STORE_VALUE_MAX);
        if (f & F_VALUE)
                code_bytes(c, &m->value, STORE_VALUE_MAX);
        if (f & F_TEXT)
                code_bytes(c, &m->text, STORE_TEXT_MAX);
}

void store_request_encode(struct buf *b, const struct store_request *m)
{
        struct codec c = CODEC_TO(b);
        struct store_request *fields = (struct store_request *)m; /* not changed */

        code_head(&c, &fields->client, &fields->op, &fields->tag);
        code_request_fields(&c, fields);
}

/* @m owns arrays only after success. @err may be NULL. */
int store_request_decode(struct store_request *m, const void *body, size_t len, struct error *err)
{
        struct codec c = CODEC_FROM(body, len);

        *m = (struct store_request){ 0 };
        code_head(&c, &m->client, &m->op, &m->tag);
        if (c.in.failed || !fields_of(m->op))
                return err_set(err, EPROTO, "unknown store request %u", m->op);
        code_request_fields(&c, m);
        if (take_done(&c.in))
                return 0;
        store_request_finish(m);
        return c.no_memory
                       ? err_set(err, ENOMEM, "out of memory")
                       : err_set(err, EPROTO, "malformed store request %s", store_op_name(m->op));
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

/* The length goes out before the value, which may come from another buffer. */
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
                /* Parts have a u64 length each, as in a list of values of TCPStore. */
                put_u64(b, m->parts[i].len);
                buf_append(b, m->parts[i].p, m->parts[i].len);
        }
}

/* All fields but the value. */
static void code_reply_head(struct codec *c, struct store_reply *m)
{
        uint8_t op = STORE_REPLY;

        code_head(c, &m->client, &op, &m->tag);
        codec_require(c, op == STORE_REPLY);
        codec_u8(c, &m->status);
        codec_require(c, m->status < STORE_STATUSES);
        codec_u64(c, (uint64_t *)&m->number);
        codec_u32_array(c, &m->ranks, &m->n_ranks, STORE_MEMBERS_MAX);
        codec_u32_array(c, &m->whom, &m->n_whom, STORE_MEMBERS_MAX);
        code_bytes(c, &m->text, STORE_TEXT_MAX);
}

void store_reply_encode_head(struct buf *b, const struct store_reply *m)
{
        code_reply_head(&CODEC_TO(b), (struct store_reply *)m);
        put_u32(b, (uint32_t)store_reply_value_len(m));
}

void store_reply_encode(struct buf *b, const struct store_reply *m)
{
        store_reply_encode_head(b, m);
        store_reply_encode_value(b, m);
}

int store_reply_decode(struct store_reply *m, const void *body, size_t len, struct error *err)
{
        struct codec c = CODEC_FROM(body, len);

        *m = (struct store_reply){ 0 };
        code_reply_head(&c, m);
        code_bytes(&c, &m->value, STORE_ANSWER_MAX);
        if (take_done(&c.in))
                return 0;
        store_reply_finish(m);
        return c.no_memory ? err_set(err, ENOMEM, "out of memory")
                           : err_set(err, EPROTO, "malformed reply from the store");
}

void store_reply_finish(struct store_reply *m)
{
        free(m->ranks);
        free(m->whom);
        m->ranks = m->whom = NULL;
        m->n_ranks = m->n_whom = 0;
}

/* The head of an event has the form of a reply's, with tag 0: no request has asked. */
static void code_event(struct codec *c, struct store_event *m)
{
        uint8_t op = STORE_EVENT;
        uint32_t tag = 0;

        code_head(c, &m->client, &op, &tag);
        codec_require(c, op == STORE_EVENT);
        codec_u8(c, &m->kind);
        codec_require(c, m->kind >= STORE_RANK_FAILED && m->kind <= STORE_STOP_REQUESTED);
        codec_u32(c, (uint32_t *)&m->rank);
        codec_u32(c, (uint32_t *)&m->node);
        /* -1 = no rank, or no node. */
        codec_require(c, m->rank >= -1 && m->node >= -1);
        code_bytes(c, &m->text, STORE_TEXT_MAX);
}

void store_event_encode(struct buf *b, const struct store_event *m)
{
        code_event(&CODEC_TO(b), (struct store_event *)m);
}

int store_event_decode(struct store_event *m, const void *body, size_t len, struct error *err)
{
        struct codec c = CODEC_FROM(body, len);

        code_event(&c, m);
        return take_done(&c.in) ? 0 : err_set(err, EPROTO, "malformed event");
}

static void code_host(struct codec *c, char **host)
{
        codec_str(c, host, STORE_KEY_MAX);
}

static void code_topology(struct codec *c, struct topology *t)
{
        CODEC_ARRAY(c, t->hosts, t->n_nodes, STORE_MEMBERS_MAX, code_host);
        codec_u32_array(c, &t->node_of_rank, &t->world_size, STORE_MEMBERS_MAX);
        for (uint32_t i = 0; i < t->world_size; i++)
                /* Readers use the numbers as indexes of the hosts. */
                codec_require(c, t->node_of_rank[i] < t->n_nodes);
}

void topology_encode(struct buf *b, const struct topology *t)
{
        code_topology(&CODEC_TO(b), (struct topology *)t);
}

int topology_decode(struct topology *t, const void *p, size_t len, struct error *err)
{
        struct codec c = CODEC_FROM(p, len);

        *t = (struct topology){ 0 };
        code_topology(&c, t);
        if (take_done(&c.in))
                return 0;
        topology_finish(t);
        return err_set(err, c.no_memory ? ENOMEM : EPROTO, "malformed topology");
}

void topology_finish(struct topology *t)
{
        code_topology(&CODEC_FREEING, t);
}

const char *key_format(char *to, struct bytes key)
{
        static const char cut[] = "...";
        const unsigned char *p = key.p;
        size_t at = 0;

        for (size_t i = 0; i < key.len; i++) {
                size_t need = p[i] >= ' ' && p[i] <= '~' ? 1 : 4;

                /* A character goes in only if the mark of a cut text would still fit behind it. */
                if (at + need + sizeof(cut) > KEY_FORMAT_SIZE) {
                        at += (size_t)snprintf(to + at, KEY_FORMAT_SIZE - at, "%s", cut);
                        break;
                }
                if (need == 1)
                        to[at] = (char)p[i];
                else
                        snprintf(to + at, KEY_FORMAT_SIZE - at, "\\x%02x", p[i]);
                at += need;
        }
        to[at] = '\0';
        return to;
}

const char *store_call_name(uint8_t op)
{
        return op == STORE_BARRIER ? "barrier" : op == STORE_GATHER ? "all_gather" : "broadcast";
}
