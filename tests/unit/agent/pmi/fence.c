/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences of nodes through relays, in front of a real store server: three nodes with two ranks each,
 * the third below the second.
 */
#include <errno.h>

#include "agent/pmi/fence.h"
#include "base/buf.h"
#include "head/job/store_server.h"
#include "lib/relays.h"
#include "lib/unit.h"

enum { NODES = 3, RANKS = 6, LARGE = 3 << 20 };

static const uint32_t node_of_rank[RANKS] = { 0, 0, 1, 1, 2, 2 };

/* A node: its fence, and what the callbacks said as "NODE=VALUE " and "done STATUS TEXT". */
static struct side {
        struct fence *fence;
        struct buf said;
        size_t bytes;
        int again; /* fences that the callback begins */
} sides[NODES];
static struct relays *rs;

static void on_value(void *ctx, uint32_t node, struct bytes value)
{
        struct side *s = ctx;

        s->bytes += value.len;
        if (value.len < 100)
                buf_printf(&s->said, "%u=%.*s ", node, (int)value.len, (const char *)value.p);
}

static void on_done(void *ctx, enum store_status status, struct bytes text);

static struct fence_waiter waiter_of(int node, bool fetch)
{
        return (struct fence_waiter){ .value = fetch ? on_value : NULL,
                                      .done = on_done,
                                      .ctx = &sides[node] };
}

static void on_done(void *ctx, enum store_status status, struct bytes text)
{
        struct side *s = ctx;
        int node = (int)(s - sides);

        buf_printf(&s->said, status == STORE_OK ? "done " : "done %d %.*s ", status, (int)text.len,
                   (const char *)text.p);
        if (s->again-- > 0)
                fence_begin(s->fence, NULL, 0, bytes_of("again"), waiter_of(node, true));
}

static int set_up_nodes(void **state UNUSED)
{
        relays_now = 1000000000;
        rs = relays_create(NODES, RANKS / NODES);
        relays_hang_below(rs, 2, 1);
        for (uint32_t i = 0; i < NODES; i++) {
                sides[i] = (struct side){ .said = BUF_INIT };
                sides[i].fence =
                        fence_create(relays_at(rs, (int)i),
                                     (struct fence_world){ node_of_rank, RANKS, NODES, i });
                assert_non_null(sides[i].fence);
        }
        return 0;
}

static int tear_down_nodes(void **state UNUSED)
{
        for (int i = 0; i < NODES; i++) {
                fence_destroy(sides[i].fence);
                buf_finish(&sides[i].said);
        }
        relays_settle(rs);
        relays_destroy(rs);
        return 0;
}

static void begin(int node, const char *value, bool fetch)
{
        assert_int_equal(
                fence_begin(sides[node].fence, NULL, 0, bytes_of(value), waiter_of(node, fetch)),
                0);
}

static void expect_said(int node, const char *want)
{
        buf_append(&sides[node].said, "", 1);
        assert_string_equal((const char *)buf_data(&sides[node].said), want);
        buf_clear(&sides[node].said);
}

static void expect_all(const char *want)
{
        for (int i = 0; i < NODES; i++)
                expect_said(i, want);
}

/* --- all nodes -------------------------------------------------------------------------------- */

TEST_WITH(set_up_nodes, tear_down_nodes, every_node_gets_every_value)
{
        begin(0, "a", true);
        begin(1, "b", true);
        relays_settle(rs);
        expect_all("");
        begin(2, "c", true);
        relays_settle(rs);
        expect_all("0=a 1=b 2=c done ");
        assert_int_equal(relays_sent(rs, 0, STORE_BARRIER), 1);
        assert_int_equal(relays_sent(rs, 0, STORE_FETCH), 1);
}

TEST_WITH(set_up_nodes, tear_down_nodes, values_can_wait_for_a_fetch)
{
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < NODES; i++)
                        begin(i, i == round ? "x" : "", false);
                relays_settle(rs);
                expect_all("done ");
        }
        assert_int_equal(relays_sent(rs, 0, STORE_FETCH), 0);
        for (int i = 0; i < NODES; i++) {
                assert_true(fence_has_unfetched(sides[i].fence));
                fence_fetch(sides[i].fence, waiter_of(i, true));
        }
        relays_settle(rs);
        expect_all("0=x 1=x 2=x done ");
        assert_int_equal(relays_sent(rs, 0, STORE_FETCH), 1);
        assert_false(fence_has_unfetched(sides[0].fence));
        fence_fetch(sides[0].fence, waiter_of(0, true));
        expect_said(0, "done ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, fences_of_a_node_queue_up)
{
        begin(0, "1", true);
        begin(0, "2", true);
        begin(0, "3", true);
        for (int i = 1; i < NODES; i++) {
                begin(i, "", true);
                relays_settle(rs);
        }
        expect_said(0, "0=1 done ");
        for (int i = 1; i < NODES; i++) {
                begin(i, "", true);
                begin(i, "", true);
        }
        relays_settle(rs);
        expect_said(0, "0=2 done 0=3 done ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, a_callback_begins_the_next)
{
        for (int i = 0; i < NODES; i++) {
                sides[i].again = 2;
                begin(i, "first", true);
        }
        relays_settle(rs);
        expect_all("0=first 1=first 2=first done 0=again 1=again 2=again done "
                   "0=again 1=again 2=again done ");
}

/* More than a single answer of the store may hold. */
TEST_WITH(set_up_nodes, tear_down_nodes, large_values_arrive)
{
        char *large = calloc(1, LARGE);

        for (int round = 0; round < 4; round++)
                for (int i = 0; i < NODES; i++) {
                        struct bytes value = { large, LARGE };

                        assert_int_equal(fence_begin(sides[i].fence, NULL, 0, value,
                                                     waiter_of(i, round == 3)),
                                         0);
                }
        relays_settle(rs);
        free(large);
        expect_all("done done done done ");
        for (int i = 0; i < NODES; i++)
                assert_int_equal(sides[i].bytes, 4 * NODES * LARGE);
}

/* --- some ranks ------------------------------------------------------------------------------- */

TEST_WITH(set_up_nodes, tear_down_nodes, members_meet_without_the_others)
{
        static const uint32_t some[] = { 1, 4, 5 }, pair[] = { 0, 1 };

        fence_begin(sides[0].fence, some, 3, bytes_of("a"), waiter_of(0, true));
        begin(0, "all", true); /* independent */
        relays_settle(rs);
        expect_said(0, "");
        fence_begin(sides[2].fence, some, 3, bytes_of("c"), waiter_of(2, true));
        relays_settle(rs);
        expect_said(0, "0=a 2=c done ");
        expect_said(2, "0=a 2=c done ");
        fence_begin(sides[0].fence, pair, 2, bytes_of("alone"), waiter_of(0, true));
        relays_settle(rs);
        expect_said(0, "0=alone done ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, wrong_members_are_refused)
{
        static const uint32_t elsewhere[] = { 2, 3 }, twice[] = { 0, 0 }, beyond[] = { 0, RANKS };
        struct fence *f = sides[0].fence;
        struct bytes huge = { "", STORE_VALUE_MAX + 1 };

        assert_int_equal(fence_begin(f, elsewhere, 2, bytes_of(""), waiter_of(0, false)), -EINVAL);
        assert_int_equal(fence_begin(f, twice, 2, bytes_of(""), waiter_of(0, false)), -EINVAL);
        assert_int_equal(fence_begin(f, beyond, 2, bytes_of(""), waiter_of(0, false)), -EINVAL);
        assert_int_equal(fence_begin(f, twice, 0, bytes_of(""), waiter_of(0, false)), -EINVAL);
        assert_int_equal(fence_begin(f, NULL, 0, huge, waiter_of(0, false)), -EMSGSIZE);
        expect_said(0, "");
}

/* --- failures --------------------------------------------------------------------------------- */

TEST_WITH(set_up_nodes, tear_down_nodes, a_failed_rank_ends_the_fence)
{
        begin(0, "a", true);
        begin(2, "c", true);
        relays_settle(rs);
        store_server_rank_failed(relays_store_server(rs), 2, "rank 2 failed");
        relays_settle(rs);
        expect_said(0, "done 2 barrier `\\x00hn:fence/all`: rank 2 failed ");
        expect_said(2, "done 2 barrier `\\x00hn:fence/all`: rank 2 failed ");
        begin(1, "b", true);
        relays_settle(rs);
        expect_said(1, "done 2 barrier `\\x00hn:fence/all`: rank 2 failed ");
}

TEST_WITH(set_up_nodes, tear_down_nodes, a_rank_that_left_ends_the_fence)
{
        begin(0, "a", false);
        relays_settle(rs);
        store_server_rank_exited(relays_store_server(rs), 3);
        relays_settle(rs);
        buf_append(&sides[0].said, "", 1);
        assert_non_null(strstr((const char *)buf_data(&sides[0].said), "done 2 "));
}

TEST_WITH(set_up_nodes, tear_down_nodes, a_value_that_the_store_refuses_fails_here)
{
        store_server_limit(relays_store_server(rs), 5000);
        for (int i = 0; i < NODES; i++) {
                char value[3000] = "";

                memset(value, 'x', sizeof(value) - 1);
                begin(i, i ? "" : value, false);
                begin(i, i ? "" : value, false);
        }
        relays_settle(rs);
        expect_said(1, "done done ");
        buf_append(&sides[0].said, "", 1);
        assert_non_null(strstr((const char *)buf_data(&sides[0].said), "done 7 "));
}

TEST_WITH(set_up_nodes, tear_down_nodes, an_unanswered_fence_can_be_dropped)
{
        begin(0, "a", true);
        begin(1, "b", true);
        relays_settle(rs);
        fence_destroy(sides[0].fence);
        sides[0].fence = NULL;
        relays_settle(rs);
        expect_said(0, "");
}

/* --- keys of hnlaunch's own ------------------------------------------------------------------- */

static struct buf heard;

static void on_client_reply(void *ctx UNUSED, const struct store_reply *reply)
{
        buf_printf(&heard, "%u:%d:%d ", reply->tag, reply->status, (int)reply->number);
}

static void ask_as_a_rank(struct relay_client *c, uint32_t tag, uint8_t op, struct bytes key)
{
        relay_request(c, &(struct store_request){
                                 .op = op, .tag = tag, .key = key, .keys = &key, .n_keys = 1 });
        relays_settle(rs);
}

TEST_WITH(set_up_nodes, tear_down_nodes, ranks_neither_see_nor_name_the_keys)
{
        struct relay_client *c = relay_client_create(
                relays_at(rs, 0), (struct relay_client_ops){ .reply = on_client_reply }, NULL);
        static const char name[] = STORE_OWN_PREFIX "fence/all/0/0";
        struct bytes own = { name, sizeof(name) - 1 };

        for (int i = 0; i < NODES; i++)
                begin(i, "v", true);
        relays_settle(rs);
        ask_as_a_rank(c, 1, STORE_NUM_KEYS, bytes_of(""));
        ask_as_a_rank(c, 2, STORE_NUM_KEYS, (struct bytes){ "", 1 });
        ask_as_a_rank(c, 3, STORE_LIST, bytes_of(""));
        ask_as_a_rank(c, 4, STORE_SET, own);
        ask_as_a_rank(c, 5, STORE_FETCH, own);
        ask_as_a_rank(c, 6, STORE_DELETE, own);
        ask_as_a_rank(c, 7, STORE_CHECK, own);
        ask_as_a_rank(c, 8, STORE_BARRIER, own);
        ask_as_a_rank(c, 9, STORE_SET, (struct bytes){ name, 3 });
        ask_as_a_rank(c, 10, STORE_NUM_KEYS, bytes_of(""));
        buf_append(&heard, "", 1);
        assert_string_equal((const char *)buf_data(&heard),
                            "1:0:0 2:0:0 3:0:0 4:3:0 5:3:0 6:3:0 7:3:0 8:3:0 9:0:0 10:0:1 ");
        buf_finish(&heard);
        relay_client_destroy(c);
}

TEST_WITH(set_up_nodes, tear_down_nodes, a_wait_on_the_node_is_shown_to_the_store)
{
        const struct store_server *store = relays_store_server(rs);

        for (int times = 0; times < 2; times++) {
                for (int i = 0; i < NODES; i++)
                        fence_show_wait(sides[i].fence, true);
                fence_show_wait(sides[0].fence, true);
                relays_settle(rs);
                assert_true(store_server_waiting(store) > 0);
                fence_show_wait(sides[1].fence, false);
                relays_settle(rs);
                assert_true(store_server_waiting(store) > 0);
                fence_show_wait(sides[0].fence, false);
                fence_show_wait(sides[2].fence, false);
                relays_settle(rs);
                assert_int_equal(store_server_waiting(store), 0);
        }
        fence_show_wait(sides[2].fence, true);
        for (int i = 0; i < NODES; i++)
                begin(i, "x", false);
        relays_settle(rs);
        expect_all("done ");
}
