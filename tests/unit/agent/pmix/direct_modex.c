/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data on request between nodes through relays, in front of a real store server: three nodes with
 * two ranks each, the third below the second.
 */
#include <stdio.h>

#include "agent/pmix/direct_modex.h"
#include "base/buf.h"
#include "head/job/store_server.h"
#include "lib/relays.h"
#include "lib/unit.h"

enum { NODES = 3, RANKS = 6, NOT_FOUND = -46, LARGE = 3 << 20 };

/* A node, and what its callbacks said: "wanted RANK " and "ID=DATA " or "ID!STATUS ". */
static struct modex_side {
        struct direct_modex *modex;
        struct buf said;
        size_t bytes;
        uint32_t wish; /* the last number asked of us */
        bool supplies; /* at once, "data of RANK" */
} sides[NODES];
static struct relays *rs;

static void on_modex_wanted_here(void *ctx, uint32_t id, uint32_t rank)
{
        struct modex_side *s = ctx;
        char text[32];

        buf_printf(&s->said, "wanted %u ", rank);
        s->wish = id;
        snprintf(text, sizeof(text), "data of %u", rank);
        if (s->supplies)
                direct_modex_supply(s->modex, id, 0, bytes_of(text));
}

static void on_modex_answered_here(void *ctx, uint32_t id, int32_t status, struct bytes data)
{
        struct modex_side *s = ctx;

        s->bytes += data.len;
        if (status)
                buf_printf(&s->said, "%u!%d ", id, status);
        else if (data.len < 100)
                buf_printf(&s->said, "%u=%.*s ", id, (int)data.len, (const char *)data.p);
}

static void create_side(uint32_t node)
{
        static const struct direct_modex_ops ops = { on_modex_wanted_here, on_modex_answered_here };

        sides[node].modex = direct_modex_create(relays_at(rs, (int)node), node, ops, &sides[node]);
        assert_non_null(sides[node].modex);
}

static int set_up_nodes(void **state UNUSED)
{
        relays_now = 1000000000;
        rs = relays_create(NODES, RANKS / NODES);
        relays_hang_below(rs, 2, 1);
        for (uint32_t i = 0; i < NODES; i++) {
                sides[i] = (struct modex_side){ .said = BUF_INIT };
                create_side(i);
        }
        relays_settle(rs);
        return 0;
}

static int tear_down_nodes(void **state UNUSED)
{
        for (int i = 0; i < NODES; i++) {
                direct_modex_destroy(sides[i].modex);
                buf_finish(&sides[i].said);
        }
        relays_settle(rs);
        relays_destroy(rs);
        return 0;
}

static void ignore_modex_reply(void *ctx UNUSED, const struct store_reply *reply UNUSED)
{
}

static void expect_said(int node, const char *want)
{
        buf_append(&sides[node].said, "", 1);
        assert_string_equal((const char *)buf_data(&sides[node].said), want);
        buf_clear(&sides[node].said);
}

static void ask_and_settle(int from, uint32_t id, uint32_t node, uint32_t rank)
{
        direct_modex_ask(sides[from].modex, id, node, rank);
        relays_settle(rs);
}

/* --- requests --------------------------------------------------------------------------------- */

TEST_WITH(set_up_nodes, tear_down_nodes, data_come_from_the_node_that_is_asked)
{
        sides[1].supplies = sides[2].supplies = true;
        ask_and_settle(0, 7, 2, 5);
        ask_and_settle(0, 8, 1, 2);
        ask_and_settle(2, 7, 1, 3);
        expect_said(0, "7=data of 5 8=data of 2 ");
        expect_said(1, "wanted 2 wanted 3 ");
        expect_said(2, "wanted 5 7=data of 3 ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, an_answer_may_come_late)
{
        uint32_t first;

        ask_and_settle(0, 1, 1, 2);
        first = sides[1].wish;
        ask_and_settle(0, 2, 1, 3);
        expect_said(0, "");
        direct_modex_supply(sides[1].modex, sides[1].wish, 0, bytes_of("second"));
        relays_settle(rs);
        expect_said(0, "2=second ");
        direct_modex_supply(sides[1].modex, first, NOT_FOUND, (struct bytes){ 0 });
        relays_settle(rs);
        expect_said(0, "1!-46 ");
        /* Answered: the number is unknown now. */
        direct_modex_supply(sides[1].modex, first, 0, bytes_of("again"));
        relays_settle(rs);
        expect_said(0, "");
}

/* A number is free again as soon as its answer is there. */
TEST_WITH(set_up_nodes, tear_down_nodes, numbers_are_used_again)
{
        sides[2].supplies = true;
        for (uint32_t rank = 0; rank < 4; rank++) {
                char want[32];

                ask_and_settle(0, 1, 2, rank);
                snprintf(want, sizeof(want), "1=data of %u ", rank);
                expect_said(0, want);
        }
}

TEST_WITH(set_up_nodes, tear_down_nodes, many_requests_wait_in_the_queue)
{
        enum { REQUESTS = 50 };

        sides[1].supplies = true;
        for (uint32_t i = 0; i < REQUESTS; i++) {
                direct_modex_ask(sides[0].modex, i, 1, i);
                direct_modex_ask(sides[2].modex, i, 1, i);
        }
        relays_settle(rs);
        for (int node = 0; node < NODES; node += 2) {
                size_t answers = 0;

                buf_append(&sides[node].said, "", 1);
                for (char *at = (char *)buf_data(&sides[node].said); (at = strstr(at, "=data of "));
                     at++)
                        answers++;
                assert_int_equal(answers, REQUESTS);
        }
}

TEST_WITH(set_up_nodes, tear_down_nodes, empty_and_large_data_arrive)
{
        unsigned char *large = calloc(1, LARGE);

        ask_and_settle(0, 1, 2, 4);
        direct_modex_supply(sides[2].modex, sides[2].wish, 0, (struct bytes){ 0 });
        relays_settle(rs);
        expect_said(0, "1= ");
        sides[0].bytes = 0;
        ask_and_settle(0, 2, 2, 4);
        direct_modex_supply(sides[2].modex, sides[2].wish, 0, (struct bytes){ large, LARGE });
        relays_settle(rs);
        assert_int_equal(sides[0].bytes, LARGE);
        expect_said(0, "");
        free(large);
}

/* --- faults ----------------------------------------------------------------------------------- */

/* A program of the job puts what is no request into the queue of node 1. */
TEST_WITH(set_up_nodes, tear_down_nodes, items_that_are_no_request_are_passed_over)
{
        static const struct relay_client_ops nothing = { .reply = ignore_modex_reply,
                                                         .is_relay = true };
        static const char *const items[] = { "", "short", "twelve bytes and more" };
        struct relay_client *other = relay_client_create(relays_at(rs, 0), nothing, NULL);
        CLEANUP(buf_finish) struct buf key = BUF_INIT;

        assert_non_null(other);
        buf_append(&key, STORE_OWN_PREFIX, STORE_OWN_PREFIX_LEN);
        buf_printf(&key, "modex/ask/1");
        for (uint32_t i = 0; i < ARRAY_SIZE(items); i++)
                relay_request(other,
                              &(struct store_request){ .op = STORE_PUSH,
                                                       .tag = i + 1,
                                                       .key = { buf_data(&key), buf_len(&key) },
                                                       .value = bytes_of(items[i]) });
        relays_settle(rs);
        expect_said(1, "");
        sides[1].supplies = true;
        ask_and_settle(0, 1, 1, 3);
        expect_said(0, "1=data of 3 ");
        relay_client_destroy(other);
}

TEST_WITH(set_up_nodes, tear_down_nodes, a_node_that_leaves_does_not_harm_others)
{
        ask_and_settle(0, 1, 1, 2);
        ask_and_settle(2, 1, 1, 2);
        expect_said(1, "wanted 2 wanted 2 ");
        direct_modex_destroy(sides[0].modex); /* its request is under way */
        sides[0].modex = NULL;
        direct_modex_supply(sides[1].modex, sides[1].wish, 0, bytes_of("x"));
        relays_settle(rs);
        expect_said(2, "1=x ");
        expect_said(0, "");
        create_side(0);
        sides[1].supplies = true;
        ask_and_settle(0, 9, 1, 3);
        expect_said(0, "9=data of 3 ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, the_loss_of_the_store_fails_requests)
{
        ask_and_settle(2, 1, 0, 0);
        expect_said(0, "wanted 0 ");
        store_server_rank_failed(relays_store_server(rs), 0, "rank 0 was killed by signal 9");
        relays_settle(rs);
        expect_said(2, "1!-46 ");
}
