/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/status_msg.h"

#include <errno.h>

#include "lib/frames.h"
#include "lib/unit.h"
#include "wire/codec.h"
#include "wire/msg.h"

static struct node_status_rank ranks[] = {
        { .rank = 70000,
          .local_rank = 7,
          .pid = 4194304,
          .state = 'D',
          .started_ms = 1,
          .said_ms = STATUS_NEVER,
          .seen_ms = 2,
          .cpu_percent = 350,
          .channel = "nfs_wait_on_request",
          .wait = { "WAIT", "/k", 3, 4 },
          .ports = { 1, 22, 333, 65535 },
          .n_ports = STATUS_PORTS },
        { .rank = 1 },
};
static struct node_status_conn conns[] = {
        { .addr = "fe80::1", .port = 40000, .seen_ms = 9, .wait = { "GET", "k\\x00", 1, 10 } },
        { .addr = "10.0.0.1" },
        { .port = 1 },
};

static struct node_status sample_status(uint32_t n_ranks, uint32_t n_conns)
{
        return (struct node_status){ .number = 5,
                                     .rejected = 6,
                                     .ranks = ranks,
                                     .n_ranks = n_ranks,
                                     .conns = conns,
                                     .n_conns = n_conns,
                                     .other = { 77, 3, 12355, "python3" } };
}

static void assert_same_wait(const struct node_status_wait *a, const struct node_status_wait *b)
{
        assert_string_equal(a->op, b->op);
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->n_keys, b->n_keys);
        assert_int_equal(a->ms, b->ms);
}

static void assert_same_rank(const struct node_status_rank *a, const struct node_status_rank *b)
{
        assert_int_equal(a->rank, b->rank);
        assert_int_equal(a->local_rank, b->local_rank);
        assert_int_equal(a->pid, b->pid);
        assert_int_equal(a->state, b->state);
        assert_int_equal(a->started_ms, b->started_ms);
        assert_int_equal(a->said_ms, b->said_ms);
        assert_int_equal(a->seen_ms, b->seen_ms);
        assert_int_equal(a->cpu_percent, b->cpu_percent);
        assert_string_equal(a->channel, b->channel);
        assert_same_wait(&a->wait, &b->wait);
        assert_int_equal(a->n_ports, b->n_ports);
        assert_memory_equal(a->ports, b->ports, sizeof(a->ports));
}

TEST(a_status_comes_back_as_sent)
{
        const struct node_status sent = sample_status(ARRAY_SIZE(ranks), ARRAY_SIZE(conns));
        CLEANUP(node_status_finish) struct node_status got;

        ASSERT_ONLY_WHOLE(node_status, MSG_STATUS, &sent);
        ASSERT_COMES_BACK(node_status, MSG_STATUS, &got, &sent);
        assert_int_equal(got.number, 5);
        assert_int_equal(got.rejected, 6);
        assert_int_equal(got.n_ranks, ARRAY_SIZE(ranks));
        for (uint32_t i = 0; i < got.n_ranks; i++)
                assert_same_rank(&got.ranks[i], &ranks[i]);
        assert_int_equal(got.n_conns, ARRAY_SIZE(conns));
        for (uint32_t i = 0; i < got.n_conns; i++) {
                assert_string_equal(got.conns[i].addr, conns[i].addr);
                assert_int_equal(got.conns[i].port, conns[i].port);
                assert_int_equal(got.conns[i].seen_ms, conns[i].seen_ms);
                assert_same_wait(&got.conns[i].wait, &conns[i].wait);
        }
        assert_int_equal(got.other.pid, 77);
        assert_int_equal(got.other.rank, 3);
        assert_int_equal(got.other.port, 12355);
        assert_string_equal(got.other.name, "python3");
}

TEST(an_inspection_comes_back_as_sent)
{
        const struct inspect_order order = { .number = 5,
                                             .what = INSPECT_STACKS,
                                             .limit_ms = 12000,
                                             .ranks = (uint32_t[]){ 70000, 1 },
                                             .n_ranks = 2,
                                             .pid = 4194303,
                                             .dumped = true,
                                             .path = "/data/x",
                                             .gpus = (uint32_t[]){ 7 },
                                             .n_gpus = 1 };
        const struct inspected answer = { .number = 5,
                                          .left = 63,
                                          .rank = 70000,
                                          .pid = 4194304,
                                          .state = 'D',
                                          .cpu_permille = STATUS_NEVER,
                                          .io_kib = 70001,
                                          .name = "python3",
                                          .channel = "nfs_wait_on_request",
                                          .blocked = "read /tmp/fifo",
                                          .source = "py-spy",
                                          .problem = "not installed: gdb",
                                          .stack = (char[]){ "f (a.py:1)\n" } };
        struct inspect_order o;
        CLEANUP(inspected_finish) struct inspected a;

        ASSERT_COMES_BACK(inspect_order, MSG_INSPECT, &o, &order);
        assert_int_equal(o.number, 5);
        assert_int_equal(o.what, INSPECT_STACKS);
        assert_int_equal(o.limit_ms, 12000);
        assert_int_equal(o.n_ranks, 2);
        assert_int_equal(o.ranks[0], 70000);
        assert_int_equal(o.pid, 4194303);
        assert_true(o.dumped);
        assert_string_equal(o.path, "/data/x");
        assert_int_equal(o.n_gpus, 1);
        assert_int_equal(o.gpus[0], 7);
        inspect_order_finish(&o);
        ASSERT_MALFORMED(inspect_order, MSG_INSPECT,
                         &(struct inspect_order){ .what = INSPECT_WHATS });
        ASSERT_ONLY_WHOLE(inspected, MSG_INSPECTED, &answer);
        ASSERT_COMES_BACK(inspected, MSG_INSPECTED, &a, &answer);
        assert_int_equal(a.left, 63);
        assert_int_equal(a.rank, 70000);
        assert_int_equal(a.pid, 4194304);
        assert_int_equal(a.state, 'D');
        assert_int_equal(a.cpu_permille, STATUS_NEVER);
        assert_int_equal(a.io_kib, 70001);
        assert_string_equal(a.name, answer.name);
        assert_string_equal(a.channel, answer.channel);
        assert_string_equal(a.blocked, answer.blocked);
        assert_string_equal(a.source, answer.source);
        assert_string_equal(a.problem, answer.problem);
        assert_string_equal(a.stack, answer.stack);
}

TEST(a_status_may_be_empty)
{
        const struct node_status sent = sample_status(0, 0);
        CLEANUP(node_status_finish) struct node_status got;

        ASSERT_COMES_BACK(node_status, MSG_STATUS, &got, &sent);
        assert_int_equal(got.n_ranks, 0);
        assert_int_equal(got.n_conns, 0);
}

TEST(a_malformed_status_is_named)
{
        const struct node_status sent = sample_status(ARRAY_SIZE(ranks), ARRAY_SIZE(conns));
        struct frame f = CARRY(node_status, MSG_STATUS, &sent);
        struct node_status got;
        struct error err;

        f.len--;
        assert_int_equal(node_status_decode(&got, &f, &err), -EPROTO);
        assert_string_equal(err.text, "malformed STATUS message");
}

TEST(a_rank_has_at_most_the_ports_of_a_message)
{
        struct node_status_rank rank = { .rank = 1, .n_ports = STATUS_PORTS + 1 };
        const struct node_status sent = { .ranks = &rank, .n_ranks = 1 };

        ASSERT_MALFORMED(node_status, MSG_STATUS, &sent);
}

/* 16 Mi ranks in a message of a few bytes. */
TEST(a_count_larger_than_the_message_does_not_allocate)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t mark = frame_begin(&b, MSG_STATUS);
        struct node_status got;
        struct error err;
        struct frame f;

        put_u32(&b, 1);
        put_u32(&b, 0);
        put_u32(&b, 1 << 24);
        frame_end(&b, mark);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(node_status_decode(&got, &f, &err), -EPROTO);
        assert_null(got.ranks);
}

TEST(a_request_comes_back_as_sent)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        uint32_t number = 0;
        struct error err;
        struct frame f;

        number_encode(&b, MSG_STATUS_REQUEST, 0xfffefdfc);
        assert_int_equal(frame_peek(&b, &f, &err), 1);
        assert_int_equal(f.type, MSG_STATUS_REQUEST);
        assert_int_equal(number_decode(&number, &f, &err), 0);
        assert_int_equal(number, 0xfffefdfc);
        f.len--;
        assert_int_equal(number_decode(&number, &f, &err), -EPROTO);
}

TEST(facts_of_a_node_come_back_as_sent)
{
        const struct node_facts sent = { .number = 9,
                                         .fs_type = 0x9123683E,
                                         .fs_id = UINT64_MAX,
                                         .gpu = "Xid 79",
                                         .held = "7 MiB of GPU 1" };
        struct node_facts m;

        ASSERT_COMES_BACK(node_facts, MSG_FACTS, &m, &sent);
        assert_int_equal(m.number, 9);
        assert_int_equal(m.fs_type, 0x9123683E);
        assert_int_equal(m.fs_id, UINT64_MAX);
        assert_string_equal(m.gpu, "Xid 79");
        assert_string_equal(m.held, "7 MiB of GPU 1");
}

TEST(an_answer_of_ras_comes_back_as_sent)
{
        const struct ras_reply answer = {
                .number = 7, .look = 1, .problem = "no answer", .text = (char[]){ "{\n}\n" }
        };
        CLEANUP(ras_reply_finish) struct ras_reply a;

        ASSERT_COMES_BACK(ras_reply, MSG_RAS, &a, &answer);
        assert_int_equal(a.number, 7);
        assert_int_equal(a.look, 1);
        assert_string_equal(a.problem, "no answer");
        assert_string_equal(a.text, "{\n}\n");
        ASSERT_MALFORMED(ras_reply, MSG_RAS, &(struct ras_reply){ .look = 2 });
}
