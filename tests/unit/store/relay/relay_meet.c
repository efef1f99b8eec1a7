/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives through relays: the ranks of a node arrive and are answered together, and each can
 * leave alone. Random collectives are in relay_collectives.c.
 */
#include <stdio.h>

#include "base/memory.h"
#include "head/job/store_server.h"
#include "lib/asking.h"
#include "lib/unit.h"

static uint32_t six[] = { 0, 1, 2, 3, 4, 5 };

static void hello(int who)
{
        ask_all(who, 50, STORE_HELLO, "", "", who);
        relays_settle(rs);
        expect(who, "50 ok");
}

static int set_up_ranks(void **state)
{
        set_up(state);
        for (int i = 0; i < CLIENTS; i++)
                hello(i);
        return 0;
}

static int set_up_chain_of_ranks(void **state)
{
        set_up_chain(state);
        for (int i = 0; i < CLIENTS; i++)
                hello(i);
        return 0;
}

/* Of the first @n ranks, with the number of the rank as the tag's end. */
static void meet(int who, uint32_t tag, uint8_t op, uint32_t n, const char *value)
{
        struct store_request req = { .op = op,
                                     .tag = tag,
                                     .key = bytes_of("m"),
                                     .value = bytes_of(value),
                                     .members = six,
                                     .n_members = n };

        relay_request(clients[who].peer, &req);
}

static uint64_t came_down(int node)
{
        return relay_counts(relays_at(rs, node)).down;
}

/* Ignores further answers. */
static void expect_text(int who, const char *part)
{
        buf_append(&clients[who].said, "", 1);
        if (!strstr((const char *)buf_data(&clients[who].said), part))
                assert_string_equal((const char *)buf_data(&clients[who].said), part);
        buf_clear(&clients[who].said);
}

/* Of the ranks 0 to @n - 1. */
static void expect_each(int n, const char *want)
{
        for (int i = 0; i < n; i++)
                expect(i, want);
}

static void meet_each(int n, uint32_t tag, uint8_t op, uint32_t n_members, const char *value)
{
        for (int i = 0; i < n; i++)
                meet(i, tag, op, n_members, value);
}

/* --- together --------------------------------------------------------------------------------- */

TEST_WITH(set_up_ranks, tear_down, a_node_comes_with_one_message_and_is_answered_with_one)
{
        uint64_t down = came_down(0);

        meet_each(4, 1, STORE_BARRIER, 4, "");
        assert_int_equal(sent(STORE_BARRIER), 0);
        relays_settle(rs);
        assert_int_equal(sent(STORE_BARRIER), 1);
        assert_int_equal(came_down(0), down + 1);
        expect_each(4, "1 ok");
}

TEST_WITH(set_up_ranks, tear_down, a_late_rank_is_answered_with_the_others)
{
        uint64_t down = came_down(0);

        for (int i = 0; i < 4; i++) {
                meet(i, 1, STORE_BARRIER, 4, "");
                all_up();
        }
        assert_int_equal(sent(STORE_BARRIER), 4);
        relays_settle(rs);
        assert_int_equal(came_down(0), down + 1);
        expect_each(4, "1 ok");
}

TEST_WITH(set_up_ranks, tear_down, values_are_everybodys_own)
{
        static const char *const values[] = { "zero", "one.", "two.", "thre", "four", "five" };

        for (int round = 1; round <= 3; round++) {
                for (int i = 5; i >= 0; i--) {
                        meet(i, 1, STORE_GATHER, 6, values[i]);
                        if (i == 2)
                                all_up();
                }
                relays_settle(rs);
                expect_each(CLIENTS, "1 ok 'zeroone.two.threfourfive'");
        }
        assert_int_equal(sent(STORE_GATHER), 6);
}

TEST_WITH(set_up_ranks, tear_down, the_root_of_a_broadcast_is_one_of_many)
{
        struct store_request req = {
                .op = STORE_BROADCAST, .tag = 7, .members = six, .n_members = 6
        };

        for (req.root = 0; req.root < 6; req.root++) {
                for (uint32_t i = 0; i < CLIENTS; i++) {
                        req.value = bytes_of(i == req.root ? "news" : "");
                        relay_request(clients[i].peer, &req);
                }
                relays_settle(rs);
                expect_each(CLIENTS, "7 ok 'news'");
        }
        assert_int_equal(sent(STORE_BROADCAST), 6);
}

TEST_WITH(set_up_ranks, tear_down, the_next_collective_begins_from_the_answer_of_the_last)
{
        for (uint32_t tag = 1; tag <= 50; tag++) {
                meet((int)tag % 4, tag, STORE_BARRIER, 4, "");
                all_up();
                for (uint32_t i = 1; i < 4; i++)
                        meet((int)(tag + i) % 4, tag, STORE_BARRIER, 4, "");
                relays_settle(rs);
                for (int i = 0; i < 4; i++) {
                        char want[16];

                        snprintf(want, sizeof(want), "%u ok", tag);
                        expect(i, want);
                }
        }
        assert_int_equal(sent(STORE_BARRIER), 100);
}

TEST_WITH(set_up_ranks, tear_down, too_much_for_one_message_is_two)
{
        CLEANUP(free_textp) char *value = calloc(1, 5 << 20);
        struct store_request req = { .op = STORE_GATHER, .tag = 1, .members = six, .n_members = 4 };

        assert_non_null(value);
        req.value = (struct bytes){ value, 4 << 20 };
        for (int i = 0; i < 4; i++)
                relay_request(clients[i].peer, &req);
        relays_settle(rs);
        assert_int_equal(sent(STORE_GATHER), 1);
        for (int i = 0; i < 4; i++) {
                expect(i, "1 ok");
                assert_int_equal(clients[i].bytes, 16 << 20);
        }
        req.value.len = 5 << 20;
        for (int i = 0; i < 4; i++)
                relay_request(clients[i].peer, &req);
        relays_settle(rs);
        assert_int_equal(sent(STORE_GATHER), 3);
        expect_each(4, "1 big 4 times 5242880 bytes are more than 16777216");
}

/* --- waiting for each other ------------------------------------------------------------------- */

enum { A_MOMENT = 1000000, SHORT = 20 * A_MOMENT };

TEST_WITH(set_up_ranks, tear_down, an_early_rank_waits_for_the_others_of_its_node)
{
        relays_now = A_MOMENT;
        for (int i = 0; i < 4; i++) {
                assert_int_equal(sent(STORE_BARRIER), 0);
                meet(i, 1, STORE_BARRIER, 6, "");
                all_up();
                relays_now += A_MOMENT;
        }
        assert_int_equal(sent(STORE_BARRIER), 1);
        assert_int_equal(relay_wait_ms(relay_of(0)), -1);
        meet(4, 1, STORE_BARRIER, 6, "");
        meet(5, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect_each(CLIENTS, "1 ok");
        assert_int_equal(relays_now, 5 * A_MOMENT);
}

TEST_WITH(set_up_ranks, tear_down, all_of_the_world_on_a_node_are_waited_for)
{
        relays_now = A_MOMENT;
        meet(0, 1, STORE_BARRIER, 0, "");
        meet(1, 1, STORE_BARRIER, 0, "");
        meet(2, 1, STORE_BARRIER, 0, "");
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 0);
        meet(3, 1, STORE_BARRIER, 0, "");
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 1);
}

TEST_WITH(set_up_ranks, tear_down, only_members_are_waited_for)
{
        relays_now = A_MOMENT;
        meet(0, 1, STORE_BARRIER, 2, "");
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 0);
        meet(1, 1, STORE_BARRIER, 2, "");
        relays_settle(rs);
        expect(0, "1 ok");
        expect(1, "1 ok");
}

TEST_WITH(set_up_ranks, tear_down, nobody_waits_for_long)
{
        relays_now = A_MOMENT;
        meet(0, 1, STORE_BARRIER, 4, "");
        all_up();
        assert_int_equal(relay_wait_ms(relay_of(0)), 20);
        relays_now += SHORT - 1;
        meet(1, 1, STORE_BARRIER, 4, "");
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 0);
        assert_int_equal(relay_wait_ms(relay_of(0)), 1);
        relays_now++;
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 1);
        assert_int_equal(relay_wait_ms(relay_of(0)), -1);
        meet(2, 1, STORE_BARRIER, 4, "");
        meet(3, 1, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect_each(4, "1 ok");
        assert_int_equal(relays_now, A_MOMENT + SHORT);
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_left_is_not_waited_for)
{
        relays_now = A_MOMENT;
        meet_each(3, 1, STORE_BARRIER, 0, "");
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 0);
        go(3);
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 1);
        come(3, false);
}

TEST_WITH(set_up_ranks, tear_down, a_question_for_missing_ranks_does_not_wait)
{
        relays_now = A_MOMENT;
        meet(0, 1, STORE_BARRIER, 6, "");
        meet(1, 1, STORE_BARRIER, 6, "");
        all_up();
        cancel(0, 1);
        all_up();
        all_down();
        expect_text(0, "1 timeout barrier `m`: ranks 2,3 (node0), 4,5 (node1) missing");
        expect(1, "");
        assert_int_equal(relays_now, A_MOMENT);
}

TEST_WITH(set_up_ranks, tear_down, large_values_do_not_wait)
{
        static char large[1 << 17];
        struct store_request req = { .op = STORE_BROADCAST, .tag = 1, .key = bytes_of("m") };

        relays_now = A_MOMENT;
        req.value = (struct bytes){ large, sizeof(large) };
        relay_request(clients[0].peer, &req);
        all_up();
        assert_int_equal(sent(STORE_BROADCAST), 1);
        req.value.len = 0;
        relay_request(clients[1].peer, &req);
        all_up();
        assert_int_equal(sent(STORE_BROADCAST), 1);
}

/* --- single ranks ----------------------------------------------------------------------------- */

static void leaves_alone(bool sent_before)
{
        meet_each(3, 1, STORE_BARRIER, 6, "");
        if (sent_before)
                all_up();
        cancel(1, 1);
        relays_settle(rs);
        expect_text(1, "1 timeout barrier `m`: ranks 3 (node0), 4,5 (node1) missing");
        expect(0, "");
        expect(2, "");
        for (int i = 3; i < 6; i++)
                meet(i, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect(0, "");
        meet(1, 2, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect(1, "2 ok");
        for (int i = 0; i < CLIENTS; i++)
                if (i != 1)
                        expect(i, "1 ok");
        cancel(1, 2);
        relays_settle(rs);
        expect(1, "");
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_gives_up_is_told_the_missing_ranks)
{
        leaves_alone(true);
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_gives_up_at_once_is_told_the_same)
{
        leaves_alone(false);
}

TEST_WITH(set_up_ranks, tear_down, an_answer_overtakes_a_leave)
{
        meet_each(4, 1, STORE_BARRIER, 4, "");
        all_up();
        cancel(0, 1);
        go(3);
        all_down();
        expect_each(3, "1 ok");
        meet(0, 2, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect(0, ""); /* the LEAVE was for the collective before */
        come(3, false);
        hello(3);
        for (int i = 1; i < 4; i++)
                meet(i, 2, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect_each(4, "2 ok");
}

static void dies(bool sent_before)
{
        meet_each(3, 1, STORE_BARRIER, 4, "");
        if (sent_before)
                all_up();
        go(1);
        meet(3, 1, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect(0, "");
        come(1, false);
        hello(1);
        meet(1, 1, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect_each(4, "1 ok");
        assert_int_equal(store_server_waiting(relays_store_server(rs)), 0);
}

TEST_WITH(set_up_ranks, tear_down, the_place_of_a_dead_rank_is_free)
{
        dies(true);
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_dies_unsent_never_arrived)
{
        dies(false);
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_dies_and_comes_again_is_there)
{
        meet_each(3, 1, STORE_BARRIER, 4, "");
        all_up();
        go(1);
        come(1, false);
        ask_all(1, 50, STORE_HELLO, "", "", 1);
        all_up();
        while (buf_len(&clients[1].said) == 0 && relays_down(rs, 0))
                ;
        expect(1, "50 ok");
        meet(1, 1, STORE_BARRIER, 4, "");
        meet(3, 1, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect_each(4, "1 ok");
}

TEST_WITH(set_up_ranks, tear_down, a_rank_that_comes_twice_is_refused)
{
        go(1);
        come(1, false);
        ask_all(1, 50, STORE_HELLO, "", "", 0);
        relays_settle(rs);
        expect(1, "50 ok");
        meet(0, 1, STORE_BARRIER, 4, "");
        meet(1, 1, STORE_BARRIER, 4, "");
        meet(2, 1, STORE_BARRIER, 4, "");
        relays_settle(rs);
        expect(0, "");
        expect(1, "1 invalid barrier `m`: rank 0 has come already");
        expect(2, "");
}

TEST_WITH(set_up_ranks, tear_down, a_client_without_hello_cannot_join)
{
        go(1);
        come(1, false);
        meet(0, 1, STORE_BARRIER, 2, "");
        meet(1, 1, STORE_BARRIER, 2, "");
        relays_settle(rs);
        expect(0, "");
        expect(1, "1 invalid the first request must be HELLO");
        assert_int_equal(relay_client_rank(clients[1].peer), -1);
        /* A client without a wait for the answer has sent HELLO. */
        ask_all(1, 50, STORE_HELLO, "", "", 1);
        meet(1, 1, STORE_BARRIER, 2, "");
        relays_settle(rs);
        expect(0, "1 ok");
        expect(1, "50 ok | 1 ok");
        assert_int_equal(relay_client_rank(clients[1].peer), 1);
}

TEST_WITH(set_up_ranks, tear_down, a_non_member_is_told_alone)
{
        meet_each(4, 1, STORE_BARRIER, 3, "");
        relays_settle(rs);
        expect_each(3, "1 ok");
        expect(3, "1 invalid rank 3 is not a member");
}

TEST_WITH(set_up_ranks, tear_down, a_differing_rank_ends_it_for_all)
{
        meet(0, 1, STORE_GATHER, 6, "x");
        meet(1, 1, STORE_GATHER, 6, "x");
        meet(4, 1, STORE_GATHER, 6, "x");
        relays_settle(rs);
        meet(2, 1, STORE_GATHER, 6, "xy");
        relays_settle(rs);
        for (int i = 0; i < 5; i++)
                if (i != 3)
                        expect(i, "1 differ all_gather `m`: rank 2 (node0) passes 2 bytes where "
                                  "rank 0 passes 1");
        expect(3, "");
}

TEST_WITH(set_up_ranks, tear_down, all_hear_of_a_failure_at_once)
{
        uint64_t down;

        meet_each(3, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        down = came_down(0);
        store_server_stop_requested(relays_store_server(rs), "so that failures are no news");
        store_server_rank_failed(relays_store_server(rs), 5, "rank 5 failed");
        relays_settle(rs);
        for (int i = 0; i < 3; i++)
                expect_text(i, "1 peer barrier `m`: rank 5 failed");
        assert_int_equal(came_down(0), down + 2); /* the news and the answer */
        meet(3, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect_text(3, "1 peer barrier `m`: rank 5 failed");
}

TEST_WITH(set_up_ranks, tear_down, the_head_hears_that_a_rank_is_gone)
{
        uint32_t members[] = { 0, 4 };
        struct store_request req = {
                .op = STORE_BARRIER, .tag = 1, .members = members, .n_members = 2
        };

        req.key = bytes_of("b");
        relay_request(clients[0].peer, &req);
        relays_settle(rs);
        go(0);
        assert_int_equal(sent(STORE_GONE), 1);
        relay_request(clients[4].peer, &req);
        relays_settle(rs);
        expect(4, ""); /* the other one's half went with it */
        come(0, false);
}

/* --- a relay below ---------------------------------------------------------------------------- */

static void below(void)
{
        relays_turn(rs, 1);
        while (relays_up(rs, 1))
                ;
}

TEST_WITH(set_up_chain_of_ranks, tear_down, nodes_come_together)
{
        static const char *const values[] = { "a", "b", "c", "d", "e", "f" };
        uint64_t down = came_down(0), there = came_down(1);

        for (int i = 0; i < CLIENTS; i++)
                meet(i, 3, STORE_GATHER, 6, values[i]);
        below();
        relays_settle(rs);
        expect_each(CLIENTS, "3 ok 'abcdef'");
        assert_int_equal(sent(STORE_GATHER), 1);
        assert_int_equal(relays_sent(rs, 1, STORE_GATHER), 1);
        assert_int_equal(came_down(0), down + 1);
        assert_int_equal(came_down(1), there + 1);
}

TEST_WITH(set_up_chain_of_ranks, tear_down, a_node_below_that_comes_in_parts_is_answered_once)
{
        uint64_t down = came_down(0), there = came_down(1);

        meet(4, 3, STORE_BARRIER, 6, "");
        below();
        all_up();
        meet(5, 3, STORE_BARRIER, 6, "");
        meet(0, 3, STORE_BARRIER, 6, "");
        below();
        all_up();
        for (int i = 1; i < 4; i++)
                meet(i, 3, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect_each(CLIENTS, "3 ok");
        assert_int_equal(sent(STORE_BARRIER), 3);
        assert_int_equal(came_down(0), down + 1);
        assert_int_equal(came_down(1), there + 1);
}

TEST_WITH(set_up_chain_of_ranks, tear_down, a_node_waits_for_those_below)
{
        relays_now = A_MOMENT;
        for (int i = 0; i < CLIENTS; i++) {
                meet(i, 1, STORE_BARRIER, 6, "");
                below();
                all_up();
        }
        assert_int_equal(sent(STORE_BARRIER), 2); /* it did not know them */
        assert_int_equal(relays_sent(rs, 1, STORE_BARRIER), 1);
        relays_settle(rs);
        for (int i = 0; i < CLIENTS; i++) {
                expect(i, "1 ok");
                meet(i, 2, STORE_BARRIER, 6, "");
                below();
                all_up();
        }
        assert_int_equal(sent(STORE_BARRIER), 3);
        relays_settle(rs);
        expect_each(CLIENTS, "2 ok");
        assert_int_equal(relays_now, A_MOMENT);
}

TEST_WITH(set_up_chain_of_ranks, tear_down, a_rank_no_longer_below_is_waited_for_once)
{
        relays_now = A_MOMENT;
        meet(4, 1, STORE_BARRIER, 6, "");
        meet(5, 1, STORE_BARRIER, 6, "");
        below();
        all_up();
        cancel(4, 1);
        cancel(5, 1);
        relays_settle(rs);
        relays_cut_off(rs, 1);
        for (uint32_t tag = 2; tag < 5; tag++) {
                unsigned before = sent(STORE_BARRIER);

                meet_each(4, tag, STORE_BARRIER, 6, "");
                all_up();
                assert_int_equal(sent(STORE_BARRIER), before + (tag > 2));
                relays_now += SHORT;
                all_up();
                assert_int_equal(sent(STORE_BARRIER), before + 1);
                for (int i = 0; i < 4; i++)
                        cancel(i, tag);
                relays_settle(rs);
        }
        for (int i = 0; i < CLIENTS; i++)
                buf_clear(&clients[i].said);
}

TEST_WITH(set_up_chain_of_ranks, tear_down, one_below_gives_up)
{
        meet(0, 1, STORE_BARRIER, 6, "");
        meet(4, 1, STORE_BARRIER, 6, "");
        meet(5, 1, STORE_BARRIER, 6, "");
        below();
        cancel(5, 1);
        relays_settle(rs);
        expect_text(5, "1 timeout barrier `m`: ranks 1-3 (node0) missing");
        expect(0, "");
        expect(4, "");
        meet(5, 2, STORE_BARRIER, 6, "");
        for (int i = 1; i < 4; i++)
                meet(i, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect_each(5, "1 ok");
        expect(5, "2 ok");
}

TEST_WITH(set_up_chain_of_ranks, tear_down, one_below_dies)
{
        for (int i = 0; i < CLIENTS; i++)
                if (i != 2)
                        meet(i, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        go(4);
        relays_settle(rs);
        meet(2, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect(0, "");
        cancel(0, 1);
        relays_settle(rs);
        expect_text(0, "1 timeout barrier `m`: rank 4 (node1) missing");
        come(4, false);
        hello(4);
        meet(4, 9, STORE_BARRIER, 6, "");
        meet(0, 9, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect(4, "9 ok");
        expect(5, "1 ok");
}

TEST_WITH(set_up_chain_of_ranks, tear_down, one_below_dies_on_its_way)
{
        meet(4, 1, STORE_BARRIER, 6, "");
        below();
        go(4);
        below();
        all_up();
        assert_int_equal(sent(STORE_BARRIER), 0);
        come(4, false);
        hello(4);
        meet_each(CLIENTS, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect_each(CLIENTS, "1 ok");
}

TEST_WITH(set_up_chain_of_ranks, tear_down, a_node_below_is_cut_off)
{
        for (int i = 0; i < CLIENTS; i++)
                if (i != 3)
                        meet(i, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        relays_cut_off(rs, 1);
        meet(3, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        expect(0, "");
        cancel(0, 1);
        relays_settle(rs);
        expect_text(0, "1 timeout barrier `m`: ranks 4,5 (node1) missing");
        for (int i = 1; i < CLIENTS; i++)
                expect(i, "");
}

TEST_WITH(set_up_chain_of_ranks, tear_down, one_below_differs)
{
        meet(0, 1, STORE_GATHER, 6, "x");
        meet(4, 1, STORE_GATHER, 6, "x");
        relays_settle(rs);
        meet(5, 1, STORE_BARRIER, 6, "");
        relays_settle(rs);
        for (int i = 0; i < CLIENTS; i++)
                if (i == 0 || i >= 4)
                        expect(i, "1 differ all_gather `m`: rank 5 (node1) calls barrier where "
                                  "rank 0 calls all_gather");
}

/* Messages of a faulty relay. */
TEST_WITH(set_up_ranks, tear_down, nonsense_from_below_is_refused)
{
        const struct relay_client_ops ops = { .reply = on_reply, .is_relay = true };
        uint32_t twice[] = { 4, 4 }, odd[] = { 1, 2, 3 };
        struct store_request req = { .op = STORE_GATHER, .tag = 1, .key = bytes_of("m") };

        go(0);
        clients[0].peer = relay_client_create(relays_at(rs, 0), ops, &clients[0]);
        req.value = bytes_of("ab");
        req.ranks = twice;
        req.n_ranks = 2;
        relay_request(clients[0].peer, &req);
        expect(0, "1 invalid the request differs from the first with this tag");
        req.ranks = odd;
        req.n_ranks = 3;
        relay_request(clients[0].peer, &req);
        expect(0, "1 invalid the request differs from the first with this tag");
        req.n_ranks = 1;
        relay_request(clients[0].peer, &req);
        relays_settle(rs);
        expect(0, "");
        req.ranks = odd + 1;
        req.value = bytes_of("abc");
        relay_request(clients[0].peer, &req);
        expect(0, "1 invalid the request differs from the first with this tag");
        req.op = STORE_GET;
        relay_request(clients[0].peer, &req);
        expect(0, "1 invalid the tag is in use");
        req.op = STORE_LEAVE;
        req.ranks = odd;
        req.n_ranks = 3;
        relay_request(clients[0].peer, &req);
        relays_settle(rs);
        expect(0, "1 timeout");
}
