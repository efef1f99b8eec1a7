/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays in front of a real rendezvous: what of many clients becomes one, and relays below relays.
 */
#include "store/relay/relay.h"

#include <stdio.h>

#include "head/job/store_server.h"
#include "lib/asking.h"
#include "lib/unit.h"

/* --- combining -------------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, additions_are_combined_in_order)
{
        for (int i = 0; i < 4; i++)
                add(i, 1, "n", i + 1);
        relays_turn(rs, 0);
        add(0, 2, "n", 10); /* gather while the first four are on their way */
        add(1, 2, "n", 20);
        relays_turn(rs, 0);
        assert_int_equal(sent(STORE_ADD), 1);
        relays_settle(rs);
        assert_int_equal(sent(STORE_ADD), 2);
        expect(0, "1 ok 1 | 2 ok 20");
        expect(1, "1 ok 3 | 2 ok 40");
        expect(2, "1 ok 6");
        expect(3, "1 ok 10");
}

TEST_WITH(set_up, tear_down, numbers_of_two_signs_are_not_combined)
{
        add(0, 1, "n", 5);
        add(1, 1, "n", -3);
        add(2, 1, "n", 2);
        relays_settle(rs);
        assert_int_equal(sent(STORE_ADD), 2);
        expect(0, "1 ok 5");
        expect(2, "1 ok 7");
        expect(1, "1 ok 4");
}

TEST_WITH(set_up, tear_down, a_refused_sum_is_split)
{
        add(4, 1, "n", INT64_MAX - 5);
        relays_settle(rs);
        add(0, 1, "n", 3);
        add(1, 1, "n", 4);
        add(2, 1, "n", 2);
        relays_settle(rs);
        assert_int_equal(sent(STORE_ADD), 4);
        expect(0, "1 ok 9223372036854775805");
        expect(1, "1 invalid key `n` is not a number that can take 4");
        expect(2, "1 ok 9223372036854775807");
        expect(4, "1 ok 9223372036854775802");
}

TEST_WITH(set_up, tear_down, sums_that_fit_no_number_are_not_made)
{
        add(0, 1, "n", INT64_MAX);
        add(1, 1, "n", 1);
        relays_settle(rs);
        expect(0, "1 ok 9223372036854775807");
        expect(1, "1 invalid key `n` is not a number that can take 1");
}

TEST_WITH(set_up, tear_down, a_client_that_leaves_is_not_in_an_unsent_sum)
{
        add(0, 1, "n", 1);
        add(1, 1, "n", 10);
        add(2, 1, "n", 100);
        cancel(1, 1);
        expect(1, "1 timeout no answer to ADD `n`");
        go(2);
        relays_settle(rs);
        expect(0, "1 ok 1");
        add(0, 2, "n", 1);
        add(1, 2, "n", 10);
        relays_turn(rs, 0);
        cancel(0, 2); /* too late to take it back: who comes behind sees it */
        relays_settle(rs);
        expect(0, "2 timeout no answer to ADD `n`");
        expect(1, "2 ok 12");
        come(2, false);
}

static void count(int who, uint32_t tag, int64_t until)
{
        ask_all(who, tag, STORE_COUNT, "c", "", until);
}

TEST_WITH(set_up, tear_down, counts_of_a_turn_are_one)
{
        for (int i = 0; i < 3; i++)
                count(i, 1, 6);
        all_up();
        assert_int_equal(sent(STORE_COUNT), 1);
        count(3, 1, 6); /* does not wait for the three, who wait for it */
        count(0, 2, 6);
        all_up();
        assert_int_equal(sent(STORE_COUNT), 2);
        all_down();
        expect(3, "");
        count(4, 1, 6);
        relays_settle(rs);
        expect(0, "1 ok 6 | 2 ok 6");
        for (int i = 1; i < 5; i++)
                expect(i, "1 ok 6");
}

TEST_WITH(set_up, tear_down, a_client_that_leaves_is_not_counted)
{
        for (int i = 0; i < 3; i++)
                count(i, 1, 2);
        cancel(1, 1);
        expect(1, "1 timeout no answer to COUNT `c`");
        relays_settle(rs);
        expect(0, "1 ok 2");
        expect(2, "1 ok 2");
        count(0, 2, 9);
        count(1, 2, 9);
        relays_settle(rs);
        cancel(0, 2);
        assert_int_equal(sent(STORE_CANCEL), 0);
        go(1);
        assert_int_equal(sent(STORE_CANCEL), 1);
        expect(0, "2 timeout no answer to COUNT `c`");
        come(1, false);
}

TEST_WITH(set_up, tear_down, a_count_that_a_death_ends_is_not_repeated)
{
        count(0, 1, 9);
        count(1, 1, 9);
        relays_settle(rs);
        store_server_rank_failed(relays_store_server(rs), 4, "rank 4 is dead");
        relays_settle(rs);
        for (int i = 0; i < 2; i++)
                expect(i, "event 1 of 4 | 1 peer rank 4 is dead");
        assert_int_equal(sent(STORE_COUNT), 1);
        expect(4, "event 1 of 4");
        elsewhere_set("c", "x");
        count(0, 2, 9);
        count(1, 2, 9);
        relays_settle(rs); /* refused: nothing was added, so it may be repeated */
        expect(0, "2 invalid key `c` is not a number that can take 1");
        expect(1, "2 invalid key `c` is not a number that can take 1");
}

/* --- the same said twice ---------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, the_same_set_is_made_once)
{
        for (int i = 0; i < 3; i++)
                set(i, 1, "k", "v");
        set(0, 2, "k", "v");
        relays_settle(rs);
        assert_int_equal(sent(STORE_SET), 1);
        expect(0, "1 ok | 2 ok");
        expect(1, "1 ok");
        expect(2, "1 ok");
}

TEST_WITH(set_up, tear_down, nothing_comes_between_two_that_are_made_once)
{
        set(0, 1, "k", "v");
        set(1, 1, "k", "w");
        set(2, 1, "k", "v");
        relays_turn(rs, 0);
        set(3, 1, "k", "v"); /* the one before has left */
        relays_turn(rs, 0);
        assert_int_equal(sent(STORE_SET), 4);
        relays_settle(rs);
        set(0, 2, "k", "v");
        ask(1, 2, STORE_DELETE, "k");
        set(2, 2, "k", "v");
        relays_settle(rs);
        assert_int_equal(sent(STORE_SET), 6);
        ask(0, 3, STORE_GET, "k");
        relays_settle(rs);
        assert_non_null(strstr((const char *)buf_data(&clients[0].said), "3 ok 'v'"));
}

TEST_WITH(set_up, tear_down, a_client_that_sets_and_goes_has_set)
{
        set(0, 1, "k", "v");
        go(0);
        relays_settle(rs);
        ask(1, 1, STORE_GET, "k");
        relays_settle(rs);
        expect(1, "1 ok 'v'");
        come(0, false);
}

/* --- a relay below ---------------------------------------------------------------------------- */

static void below_up(void)
{
        relays_turn(rs, 1);
        while (relays_up(rs, 1))
                ;
}

TEST_WITH(set_up_chain, tear_down, a_chain_says_one_thing_for_all)
{
        for (int i = 0; i < CLIENTS; i++) {
                count(i, 1, CLIENTS);
                add(i, 2, "n", 1);
                set(i, 3, "k", "v");
                ask(i, 4, STORE_FETCH, "n k");
        }
        below_up();
        relays_settle(rs);
        assert_int_equal(sent(STORE_COUNT), 1);
        assert_int_equal(sent(STORE_ADD), 1);
        assert_int_equal(sent(STORE_SET), 1);
        assert_int_equal(sent(STORE_FETCH), 1);
        for (int i = 0; i < CLIENTS; i++) {
                char want[24];

                snprintf(want, sizeof(want), "2 ok %d", i + 1);
                assert_non_null(strstr((const char *)buf_data(&clients[i].said), "1 ok 6"));
                assert_non_null(strstr((const char *)buf_data(&clients[i].said), want));
        }
}

/* Two wait below, the second by a JOIN, when the answer of the one above is on its way or not. */
static void join_below(bool in_time)
{
        ask(0, 1, STORE_GET, "k");
        all_up();
        ask(4, 1, STORE_GET, "k");
        below_up();
        all_up();
        ask(5, 1, STORE_GET, "k");
        below_up();
        if (in_time)
                all_up();
        set(1, 1, "k", "old");
        all_up();
        set(1, 2, "k", "new");
        all_up();
        relays_settle(rs);
        expect(0, "1 ok 'old'");
        expect(4, "1 ok 'old'");
        expect(5, in_time ? "1 ok 'old'" : "1 ok 'new'");
        assert_int_equal(sent(STORE_GET), in_time ? 1 : 2);
}

TEST_WITH(set_up_chain, tear_down, a_join_from_below_is_covered_in_time)
{
        join_below(true);
}

TEST_WITH(set_up_chain, tear_down, a_join_from_below_that_is_late_is_not)
{
        join_below(false);
}

TEST_WITH(set_up_chain, tear_down, an_item_is_for_one_in_a_chain_too)
{
        ask(4, 1, STORE_WAIT, "q");
        ask(5, 1, STORE_WAIT, "q");
        below_up();
        ask(0, 1, STORE_WAIT, "q");
        relays_settle(rs);
        ask_all(1, 1, STORE_PUSH, "q", "x", 0);
        relays_settle(rs);
        expect(4, "1 ok");
        expect(5, "");
        expect(0, "");
}

/* No message of a relay to one below is longer than one of the head. */
TEST_WITH(set_up_chain, tear_down, a_long_answer_is_put_together_below)
{
        set_megabytes("a", 10);
        set_megabytes("b", 9);
        set_megabytes("c", 8);
        ask(4, 1, STORE_FETCH, "a b none c");
        below_up();
        ask(0, 1, STORE_FETCH, "a b none c");
        relays_settle(rs);
        expect(0, "1 ok 3");
        expect(4, "1 ok 3");
        assert_int_equal(clients[0].bytes, 4 * sizeof(uint64_t) + (27 << 20));
        assert_int_equal(clients[4].bytes, clients[0].bytes);
}
