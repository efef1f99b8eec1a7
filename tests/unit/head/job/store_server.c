/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store server between the messages of agents and the engine: permissions, replies and news.
 * Two nodes with two ranks each; messages to nodes are noted as "node/client tag status number
 * value".
 */
#include "head/job/store_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "lib/said.h"
#include "lib/topology.h"
#include "lib/unit.h"
#include "wire/store_msg.h"

static void note_reply(int node, const void *body, size_t len)
{
        CLEANUP(store_reply_finish) struct store_reply r;

        assert_int_equal(store_reply_decode(&r, body, len, NULL), 0);
        buf_printf(&said, "%d/%u %u s%d", node, r.client, r.tag, r.status);
        if (r.number)
                buf_printf(&said, " %" PRId64, r.number);
        if (r.value.len > 1000)
                buf_printf(&said, " %zu bytes", r.value.len);
        else if (r.value.len)
                buf_printf(&said, " '%.*s'", (int)r.value.len, (const char *)r.value.p);
        if (r.text.len)
                buf_printf(&said, " %.*s", (int)r.text.len, (const char *)r.text.p);
}

static void note_news(int node, const void *body, size_t len)
{
        struct store_event n;

        assert_int_equal(store_event_decode(&n, body, len, NULL), 0);
        assert_int_equal(n.client, STORE_ALL);
        buf_printf(&said, "%d news %d rank %d node %d", node, n.kind, n.rank, n.node);
}

/* Notes the pieces as one message; the mark says that there were two. */
static void note_message(void *ctx UNUSED, int node, const void *head, size_t len,
                         struct bytes rest)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        buf_append(&b, head, len);
        buf_append(&b, rest.p, rest.len);
        if (buf_len(&said))
                buf_appends(&said, " | ");
        if (store_body_head(buf_data(&b), buf_len(&b)).op == STORE_EVENT)
                note_news(node, buf_data(&b), buf_len(&b));
        else
                note_reply(node, buf_data(&b), buf_len(&b));
        if (rest.len)
                buf_appends(&said, " in two");
}

static void note_joined(void *ctx UNUSED, int rank)
{
        buf_printf(&said, " joined %d", rank);
}

static void note_report(void *ctx UNUSED, int rank, const char *kind, const char *text)
{
        buf_printf(&said, "report %d %s %s", rank, kind, text);
}

static void note_progress(void *ctx UNUSED, int rank, int64_t step, int64_t total, const char *text)
{
        buf_printf(&said, "progress %d %d/%d %s", rank, (int)step, (int)total, text);
}

static void note_abort(void *ctx UNUSED, int rank, int code, const char *text)
{
        buf_printf(&said, " abort %d %d %s", rank, code, text);
}

/* Fits CLEANUP(). */
static void destroy_server(struct store_server **r)
{
        store_server_destroy(*r);
}

static struct store_server *create_server(void)
{
        static const struct store_server_ops ops = { .send = note_message,
                                                     .joined = note_joined,
                                                     .report_error = note_report,
                                                     .abort = note_abort,
                                                     .progress = note_progress };
        static const char *const hosts[] = { "alpha", "beta" };
        static const int node_of_rank[] = { 0, 0, 1, 1 };
        struct store_server *r =
                store_server_create(&ops, NULL, make_topology(4, 2, node_of_rank, hosts));

        assert_non_null(r);
        buf_clear(&said);
        return r;
}

static void receive_request(struct store_server *r, int node, const struct store_request *req)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        store_request_encode(&b, req);
        assert_int_equal(store_server_receive(r, node, buf_data(&b), buf_len(&b), NULL), 0);
}

struct step {
        int node;
        uint32_t client, tag;
        uint8_t op;
        const char *key, *value;
        int64_t number;
        const char *said;
};

static void play_steps(struct store_server *r, const struct step *steps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct step *t = &steps[i];
                struct bytes key = bytes_of(t->key);

                receive_request(r, t->node,
                                &(struct store_request){ .client = t->client,
                                                         .tag = t->tag,
                                                         .op = t->op,
                                                         .key = key,
                                                         .keys = &key,
                                                         .n_keys = t->key ? 1 : 0,
                                                         .value = bytes_of(t->value),
                                                         .text = bytes_of(t->value),
                                                         .number = t->number });
                expect_said(t->said);
        }
}

#define PLAY(r, ...)                                                                               \
        play_steps(r, (struct step[]){ __VA_ARGS__ }, ARRAY_SIZE(((struct step[]){ __VA_ARGS__ })))

TEST(a_client_tells_its_rank_first)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r,
             { 0, 1, 1, STORE_SET, "k", "v", .said = "0/1 1 s3 the first request must be HELLO" },
             { 0, 1, 2, STORE_COUNT, "c", .number = 1,
               .said = "0/1 2 s3 the first request must be HELLO" },
             { 0, 1, 3, STORE_JOIN, .said = "" }, { 0, 1, 4, STORE_CANCEL, .said = "" },
             { 0, 1, 5, STORE_HELLO, .number = 4, .said = "0/1 5 s3 no such rank on this node" },
             { 0, 1, 6, STORE_HELLO, .number = 2, .said = "0/1 6 s3 no such rank on this node" },
             { 0, 1, 7, STORE_HELLO, .number = -1, .said = "0/1 7 s3 no such rank on this node" },
             { 0, 1, 8, STORE_HELLO, .number = 1, .said = "0/1 8 s0 joined 1" },
             { 0, 1, 9, STORE_SET, "k", "v", .said = "0/1 9 s0" },
             { 0, 2, 1, STORE_HELLO, .number = 1, .said = "0/2 1 s0" });
}

/* An agent that invents connections. */
TEST(a_node_has_a_limited_number_of_clients)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();
        struct store_request hello = { .tag = 1, .op = STORE_HELLO };

        for (hello.client = 1; hello.client <= 1 << 16; hello.client++)
                receive_request(r, 0, &hello);
        buf_clear(&said);
        receive_request(r, 0, &hello);
        expect_said("0/65537 1 s3 too many connections of this node");
        PLAY(r, { 0, 7, 2, STORE_SET, "k", "v", .said = "0/7 2 s0" },
             { 0, 7, 0, STORE_GONE, .said = "" });
        hello.number = 2;
        receive_request(r, 1, &hello);
        buf_clear(&said);
        hello.number = 0;
        receive_request(r, 0, &hello);
        expect_said("0/65537 1 s0");
}

TEST(the_node_asks_without_hello)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r, { 0, STORE_NODE, 1, STORE_SET, "k", "v", .said = "0/0 1 s0" },
             { 1, STORE_NODE, 1, STORE_GET, "k", .said = "1/0 1 s0 'v'" },
             { 1, STORE_NODE, 2, STORE_WAIT, "x", .said = "" },
             { 1, STORE_NODE, 2, STORE_JOIN, .said = "" },
             { 0, STORE_NODE, 2, STORE_PUSH, "q", "a", .said = "0/0 2 s0 1" },
             { 0, STORE_NODE, 3, STORE_COUNT, "c", .number = 2, .said = "" },
             { 1, STORE_NODE, 3, STORE_COUNT, "c", .number = 2, .said = "0/0 3 s0 2 | 1/0 3 s0 2" },
             { 0, STORE_NODE, 4, STORE_SET, "x", "v", .said = "1/0 2 s0 1 | 0/0 4 s0" },
             { 0, STORE_NODE, 5, STORE_WAIT, "y", .said = "" },
             { 0, STORE_NODE, 5, STORE_CANCEL, .said = "0/0 5 s1 key `y` is not there" });
}

TEST(the_node_is_no_rank)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r,
             { 0, STORE_NODE, 1, STORE_HELLO, .number = 0,
               .said = "0/0 1 s3 only a rank can ask for this" },
             { 0, STORE_NODE, 2, STORE_TOPOLOGY, .said = "0/0 2 s3 only a rank can ask for this" },
             { 0, STORE_NODE, 3, STORE_ABORT, .said = "0/0 3 s3 only a rank can ask for this" },
             { 0, STORE_NODE, 4, STORE_BARRIER, "b",
               .said = "0/0 4 s3 only a rank can be a member" },
             { 0, STORE_NODE, 5, STORE_GATHER, "b", "v",
               .said = "0/0 5 s3 only a rank can be a member" },
             { 0, STORE_NODE, 6, STORE_BROADCAST, "b", "v",
               .said = "0/0 6 s3 only a rank can be a member" },
             { 0, STORE_NODE, 7, STORE_REPORT_ERROR, "kind", "text", .said = "" },
             { 0, STORE_NODE, 8, STORE_PROGRESS, .number = 1, .said = "" });
}

TEST(requests_of_the_node_outlive_a_client)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r, { 0, 1, 1, STORE_HELLO, .number = 0, .said = "0/1 1 s0 joined 0" },
             { 0, 1, 2, STORE_GET, "k", .said = "" },
             { 0, STORE_NODE, 2, STORE_GET, "k", .said = "" }, { 0, 1, 0, STORE_GONE, .said = "" },
             { 0, 1, 0, STORE_GONE, .said = "" },
             { 1, STORE_NODE, 1, STORE_SET, "k", "v", .said = "0/0 2 s0 'v' | 1/0 1 s0" },
             { 0, STORE_NODE, 3, STORE_GET, "l", .said = "" },
             { 0, STORE_NODE, 0, STORE_GONE, .said = "" },
             { 1, STORE_NODE, 2, STORE_SET, "l", "v", .said = "1/0 2 s0" });
}

TEST(a_lost_node_gets_nothing_and_has_no_effect)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r, { 0, 1, 1, STORE_HELLO, .number = 0, .said = "0/1 1 s0 joined 0" },
             { 0, 1, 2, STORE_GET, "k", .said = "" },
             { 0, STORE_NODE, 1, STORE_GET, "k", .said = "" },
             { 0, STORE_NODE, 2, STORE_COUNT, "c", .number = 3, .said = "" },
             { 1, STORE_NODE, 1, STORE_WAIT, "k", .said = "" });
        store_server_node_lost(r, 0);
        expect_said("1 news 2 rank -1 node 0 | 1/0 1 s2 node alpha is lost");
        store_server_node_lost(r, 0);
        PLAY(r, { 0, STORE_NODE, 3, STORE_SET, "k", "late", .said = "" },
             { 0, 1, 4, STORE_SET, "k", "late", .said = "" },
             { 1, STORE_NODE, 2, STORE_CHECK, "k", .said = "1/0 2 s0" },
             { 1, STORE_NODE, 3, STORE_GET, "k", .said = "1/0 3 s2 node alpha is lost" },
             { 1, STORE_NODE, 4, STORE_SET, "k", "v", .said = "1/0 4 s0" });
}

TEST(ranks_report_and_abort)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r, { 1, 9, 1, STORE_HELLO, .number = 3, .said = "1/9 1 s0 joined 3" },
             { 1, 9, 2, STORE_REPORT_ERROR, "cuda", "it broke", .said = "report 3 cuda it broke" },
             { 1, 9, 3, STORE_PROGRESS, .number = 5, .value = "n", .said = "progress 3 5/0 n" },
             { 1, 9, 4, STORE_ABORT, .number = 7, .value = "why",
               .said = "1/9 4 s0 abort 3 7 why" });
}

TEST(failures_and_stops_are_news_on_every_node)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        PLAY(r, { 0, STORE_NODE, 1, STORE_COUNT, "c", .number = 2, .said = "" });
        store_server_rank_failed(r, 2, "rank 2 is dead");
        expect_said("0 news 1 rank 2 node 1 | 1 news 1 rank 2 node 1 | 0/0 1 s2 rank 2 is dead");
        store_server_stop_requested(r, "rank 2 is dead");
        expect_said("0 news 3 rank -1 node -1 | 1 news 3 rank -1 node -1");
}

/* 80,000 ranks that end on 10,000 nodes would be 800 million messages. */
TEST(ranks_that_were_stopped_are_no_news_but_end_waits)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();

        store_server_stop_requested(r, "SIGINT");
        expect_said("0 news 3 rank -1 node -1 | 1 news 3 rank -1 node -1");
        PLAY(r, { 0, STORE_NODE, 1, STORE_COUNT, "c", .number = 2, .said = "" });
        store_server_rank_failed(r, 2, "rank 2 is dead");
        expect_said("0/0 1 s2 rank 2 is dead");
        store_server_node_lost(r, 1);
        expect_said("");
}

/* Both nodes ask for the same many keys: see store_keys.h, and the engine's groups of
 * waits. */
TEST(long_lists_are_waited_for_and_fetched)
{
        enum { MANY = 200, SIZE = 200 };
        CLEANUP(destroy_server) struct store_server *r = create_server();
        static char names[MANY][16], value[SIZE];
        struct bytes keys[MANY];
        struct store_request q = { .keys = keys, .n_keys = MANY };

        for (int i = 0; i < MANY; i++) {
                snprintf(names[i], sizeof(names[i]), "k%d", i);
                keys[i] = bytes_of(names[i]);
        }
        q.op = STORE_WAIT;
        for (int node = 0; node < 2; node++) {
                q.tag = 10;
                receive_request(r, node, &q);
        }
        assert_int_equal(store_server_waiting(r), 2);
        for (int i = 0; i < MANY; i++) {
                receive_request(r, 0,
                                &(struct store_request){ .op = STORE_SET,
                                                         .tag = 1,
                                                         .key = keys[i],
                                                         .value = { value, SIZE } });
                if (i < MANY - 1)
                        expect_said("0/0 1 s0");
        }
        expect_said("0/0 10 s0 | 1/0 10 s0 | 0/0 1 s0");
        q.tag = 11;
        receive_request(r, 1, &q);
        expect_said("1/0 11 s0");
        q.op = STORE_FETCH;
        for (int i = 0; i < 2; i++) {
                receive_request(r, 1, &q);
                expect_said("1/0 11 s0 200 41600 bytes in two");
        }
        PLAY(r, { 0, STORE_NODE, 3, STORE_SET, "k7", "", .said = "0/0 3 s0" });
        receive_request(r, 1, &q);
        expect_said("1/0 11 s0 200 41400 bytes in two");
        PLAY(r, { 0, STORE_NODE, 3, STORE_DELETE, "k7", .said = "0/0 3 s0 1" });
        receive_request(r, 1, &q);
        expect_said("1/0 11 s0 199 41400 bytes in two");
        q.op = STORE_WAIT;
        receive_request(r, 1, &q);
        expect_said("");
}

TEST(malformed_messages_are_errors)
{
        CLEANUP(destroy_server) struct store_server *r = create_server();
        struct error err;

        assert_int_equal(store_server_receive(r, 0, "nonsense", 8, &err), -EPROTO);
        expect_said("");
}
