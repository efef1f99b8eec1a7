/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/store_msg.h"

#include <errno.h>

#include "lib/unit.h"
#include "wire/codec.h"

static bool same(struct bytes a, struct bytes b)
{
        return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static void assert_same(const struct store_request *a, const struct store_request *b)
{
        assert_int_equal(a->client, b->client);
        assert_int_equal(a->tag, b->tag);
        assert_int_equal(a->op, b->op);
        assert_int_equal(a->number, b->number);
        assert_int_equal(a->total, b->total);
        assert_int_equal(a->root, b->root);
        assert_true(same(a->key, b->key) && same(a->value, b->value));
        assert_true(same(a->expect, b->expect) && same(a->text, b->text));
        assert_int_equal(a->n_keys, b->n_keys);
        for (uint32_t i = 0; i < a->n_keys; i++)
                assert_true(same(a->keys[i], b->keys[i]));
        assert_true(!a->values == !b->values);
        for (uint32_t i = 0; i < a->n_keys && a->values; i++)
                assert_true(same(a->values[i], b->values[i]));
        assert_int_equal(a->n_members, b->n_members);
        for (uint32_t i = 0; i < a->n_members; i++)
                assert_int_equal(a->members[i], b->members[i]);
        assert_int_equal(a->n_ranks, b->n_ranks);
        for (uint32_t i = 0; i < a->n_ranks; i++)
                assert_int_equal(a->ranks[i], b->ranks[i]);
}

static struct bytes two_values[] = { { "", 0 }, { "a\0b", 3 } };
static struct bytes two_keys[] = { { "one", 3 }, { "t\0o", 3 } };
static uint32_t three_ranks[] = { 5, 0, 70000 };

static const struct store_request requests[] = {
        { .op = STORE_HELLO, .number = 7 },
        { .op = STORE_SET, .key = { "k", 1 }, .value = { "v\0w", 3 } },
        { .op = STORE_SET, .key = { "k", 1 } },
        { .op = STORE_ADD, .key = { "n", 1 }, .number = -3 },
        { .op = STORE_APPEND, .key = { "k", 1 }, .value = { "x", 1 } },
        { .op = STORE_COMPARE_SET, .key = { "k", 1 }, .expect = { "a", 1 }, .value = { "bc", 2 } },
        { .op = STORE_CHECK, .keys = two_keys, .n_keys = 2 },
        { .op = STORE_DELETE, .key = { "k", 1 } },
        { .op = STORE_NUM_KEYS },
        { .op = STORE_TOPOLOGY },
        { .op = STORE_ABORT, .number = 3, .text = { "why", 3 } },
        { .op = STORE_GET, .key = { "k", 1 } },
        { .op = STORE_WAIT, .keys = two_keys, .n_keys = 2 },
        { .op = STORE_BARRIER, .key = { "world", 5 } },
        { .op = STORE_GATHER,
          .key = { "g", 1 },
          .value = { "v", 1 },
          .members = three_ranks,
          .n_members = 3 },
        { .op = STORE_BROADCAST, .key = { "g", 1 }, .value = { "v", 1 }, .root = 2 },
        { .op = STORE_BARRIER, .key = { "b", 1 }, .ranks = three_ranks, .n_ranks = 3 },
        { .op = STORE_GATHER,
          .key = { "g", 1 },
          .value = { "uvw", 3 },
          .members = three_ranks,
          .n_members = 3,
          .ranks = three_ranks,
          .n_ranks = 3 },
        { .op = STORE_LEAVE, .number = 1, .ranks = three_ranks, .n_ranks = 3 },
        { .op = STORE_CANCEL },
        { .op = STORE_REPORT_ERROR, .key = { "cuda", 4 }, .text = { "bad", 3 } },
        { .op = STORE_PROGRESS, .number = 3, .total = 9, .text = { "n", 1 } },
        { .op = STORE_DRAINED },
        { .op = STORE_FETCH, .keys = two_keys, .n_keys = 2 },
        { .op = STORE_FETCH, .keys = two_keys, .n_keys = 1 },
        { .op = STORE_SET_MANY, .keys = two_keys, .values = two_values, .n_keys = 2 },
        { .op = STORE_PUSH, .key = { "q", 1 }, .value = { "v\0w", 3 } },
        { .op = STORE_POP, .key = { "q", 1 } },
        { .op = STORE_QUEUE_LEN, .key = { "q", 1 } },
        { .op = STORE_LIST },
        { .op = STORE_COUNT, .key = { "c", 1 }, .number = 4096, .total = 8 },
        { .op = STORE_JOIN },
        { .op = STORE_GONE },
};

TEST(every_request_survives_the_way)
{
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                struct store_request want = requests[i], got = { 0 };
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                want.client = 0xfffefdfc;
                want.tag = 77;
                store_request_encode(&b, &want);
                assert_int_equal(store_request_decode(&got, buf_data(&b), buf_len(&b), NULL), 0);
                assert_same(&want, &got);
                store_request_finish(&got);
        }
}

TEST(every_shorter_request_is_malformed)
{
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                struct store_request got = { 0 };
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                store_request_encode(&b, &requests[i]);
                for (size_t len = 0; len < buf_len(&b); len++) {
                        struct error err;

                        assert_int_equal(store_request_decode(&got, buf_data(&b), len, &err),
                                         -EPROTO);
                        assert_int_equal(err.code, EPROTO);
                }
                put_u8(&b, 0);
                assert_int_equal(store_request_decode(&got, buf_data(&b), buf_len(&b), NULL),
                                 -EPROTO);
        }
}

TEST(unknown_ops_are_malformed)
{
        static const uint8_t ops[] = { 0, STORE_OPS, 63, 65, STORE_REPLY, STORE_EVENT, 255 };

        for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
                unsigned char body[STORE_BODY_HEADER] = { 0, 0, 0, 0, ops[i] };
                struct store_request got;

                assert_int_equal(store_request_decode(&got, body, sizeof(body), NULL), -EPROTO);
                assert_string_equal(store_op_name(ops[i]), "?");
        }
}

TEST(limits_are_kept_by_the_decoder)
{
        static char big[STORE_VALUE_MAX + 1];
        static const struct {
                size_t key, value;
                int ret;
        } cases[] = {
                { STORE_KEY_MAX, 1, 0 },
                { STORE_KEY_MAX + 1, 1, -EPROTO },
                { 1, STORE_VALUE_MAX, 0 },
                { 1, STORE_VALUE_MAX + 1, -EPROTO },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store_request m = { .op = STORE_SET,
                                           .key = { big, cases[i].key },
                                           .value = { big, cases[i].value } };
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                store_request_encode(&b, &m);
                assert_int_equal(store_request_decode(&m, buf_data(&b), buf_len(&b), NULL),
                                 cases[i].ret);
        }
}

TEST(a_count_without_bytes_costs_no_memory)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct store_request got;

        put_u32(&b, 1);
        put_u8(&b, STORE_WAIT);
        put_u32(&b, 2);
        put_u32(&b, STORE_KEYS_MAX);
        assert_int_equal(store_request_decode(&got, buf_data(&b), buf_len(&b), NULL), -EPROTO);
}

TEST(replies_survive_the_way)
{
        struct store_reply want = { .client = 3,
                                    .tag = 9,
                                    .status = STORE_TIMEOUT,
                                    .number = -1,
                                    .value = { "v", 1 },
                                    .text = { "text", 4 },
                                    .ranks = three_ranks,
                                    .n_ranks = 3,
                                    .whom = three_ranks + 1,
                                    .n_whom = 2 };
        struct store_reply got = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        store_reply_encode(&b, &want);
        assert_int_equal(store_reply_decode(&got, buf_data(&b), buf_len(&b), NULL), 0);
        assert_int_equal(got.client, 3);
        assert_int_equal(got.tag, 9);
        assert_int_equal(got.status, STORE_TIMEOUT);
        assert_int_equal(got.number, -1);
        assert_true(same(got.value, want.value) && same(got.text, want.text));
        assert_int_equal(got.n_ranks, 3);
        assert_memory_equal(got.ranks, three_ranks, sizeof(three_ranks));
        assert_int_equal(got.n_whom, 2);
        assert_memory_equal(got.whom, three_ranks + 1, 2 * sizeof(*three_ranks));
        store_reply_finish(&got);
        for (size_t len = 0; len < buf_len(&b); len++)
                assert_int_equal(store_reply_decode(&got, buf_data(&b), len, NULL), -EPROTO);
}

/* Replies of FETCH and LIST: the parts become one value. */
TEST(parts_become_the_value)
{
        static const struct bytes parts[] = { { "one", 3 }, { NULL, 0 }, { "t\0o", 3 } };
        static const char want[] = "\3\0\0\0\0\0\0\0one"
                                   "\0\0\0\0\0\0\0\0"
                                   "\3\0\0\0\0\0\0\0t\0o";
        struct store_reply m = { .number = 2, .parts = parts, .n_parts = 3 }, got = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        assert_int_equal(store_reply_value_len(&m), sizeof(want) - 1);
        store_reply_encode(&b, &m);
        assert_int_equal(store_reply_decode(&got, buf_data(&b), buf_len(&b), NULL), 0);
        assert_int_equal(got.value.len, sizeof(want) - 1);
        assert_memory_equal(got.value.p, want, sizeof(want) - 1);
        assert_int_equal(got.n_parts, 0);
}

TEST(ops_with_an_answer_are_known)
{
        static const uint8_t silent[] = { STORE_CANCEL, STORE_REPORT_ERROR, STORE_PROGRESS,
                                          STORE_JOIN,   STORE_LEAVE,        STORE_GONE };

        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                bool want = !memchr(silent, requests[i].op, sizeof(silent));

                assert_int_equal(store_op_has_answer(requests[i].op), want);
                assert_string_not_equal(store_op_name(requests[i].op), "?");
        }
        assert_false(store_op_has_answer(STORE_REPLY));
}

TEST(news_survive_the_way)
{
        struct store_event want = { .client = STORE_ALL,
                                    .kind = STORE_NODE_LOST,
                                    .rank = -1,
                                    .node = 4,
                                    .text = { "t", 1 } };
        struct store_event got;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        store_event_encode(&b, &want);
        assert_int_equal(store_event_decode(&got, buf_data(&b), buf_len(&b), NULL), 0);
        assert_int_equal(got.client, STORE_ALL);
        assert_int_equal(got.kind, STORE_NODE_LOST);
        assert_int_equal(got.rank, -1);
        assert_int_equal(got.node, 4);
        assert_true(same(got.text, want.text));
        for (size_t len = 0; len < buf_len(&b); len++)
                assert_int_equal(store_event_decode(&got, buf_data(&b), len, NULL), -EPROTO);
}

TEST(a_topology_names_only_nodes_it_has)
{
        char a[] = "a", second[] = "b", *hosts[] = { a, second };
        uint32_t nodes[] = { 0, 1, 1 };
        struct topology t = { hosts, 2, nodes, 3 }, got = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        topology_encode(&b, &t);
        assert_int_equal(topology_decode(&got, buf_data(&b), buf_len(&b), NULL), 0);
        assert_string_equal(got.hosts[1], "b");
        assert_int_equal(got.node_of_rank[2], 1);
        topology_finish(&got);
        buf_clear(&b);
        nodes[1] = 2;
        topology_encode(&b, &t);
        assert_int_equal(topology_decode(&got, buf_data(&b), buf_len(&b), NULL), -EPROTO);
}

TEST(the_head_of_a_body_is_read)
{
        struct store_request m = { .client = 0x01020304, .op = STORE_CANCEL, .tag = 5 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct store_head h;

        store_request_encode(&b, &m);
        h = store_body_head(buf_data(&b), buf_len(&b));
        assert_int_equal(h.client, 0x01020304);
        assert_int_equal(h.op, STORE_CANCEL);
        assert_int_equal(h.tag, 5);
        assert_int_equal(store_body_head(buf_data(&b), STORE_BODY_HEADER - 1).op, 0);
}
