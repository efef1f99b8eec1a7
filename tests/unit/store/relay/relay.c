/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays in front of a real rendezvous: what is shared, what is not, and who is told what.
 * That it all looks like one store without relays is the matter of test_linear.c.
 */
#include "store/relay/relay.h"

#include <errno.h>

#include "base/buf.h"
#include "head/job/store_server.h"
#include "lib/asking.h"
#include "lib/unit.h"

/* --- single flight ---------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, the_same_question_is_asked_once_a_turn)
{
        static const uint8_t ops[] = { STORE_GET, STORE_WAIT, STORE_CHECK, STORE_FETCH };

        elsewhere_set("k", "v");
        for (uint32_t op = 0; op < sizeof(ops); op++)
                for (int i = 0; i < 3; i++)
                        ask(i, op, ops[op], "k");
        assert_int_equal(sent(STORE_GET), 0);
        relays_settle(rs);
        for (uint32_t op = 0; op < sizeof(ops); op++)
                assert_int_equal(sent(ops[op]), 1);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(clients[i].bytes, 9); /* FETCH: a length and the byte */
                assert_memory_equal(buf_data(&clients[i].said), "0 ok 'v' | 1 ok | 2 ok 1 | 3 ok 1",
                                    33);
        }
}

TEST_WITH(set_up, tear_down, other_keys_are_other_questions)
{
        ask(0, 1, STORE_CHECK, "a b");
        ask(1, 1, STORE_CHECK, "b a");
        ask(2, 1, STORE_CHECK, "ab");
        ask(3, 1, STORE_CHECK, "a b");
        relays_settle(rs);
        assert_int_equal(sent(STORE_CHECK), 3);
        for (int i = 0; i < 4; i++)
                expect(i, "1 ok");
}

TEST_WITH(set_up, tear_down, long_lists_are_told_apart)
{
        static const char twenty[] = "a b c d e f g h i j k l m n o p q r s t";
        static const char others[] = "a b c d e f g h i j k l m n o p q r s u";

        for (int round = 0; round < 2; round++) {
                ask(0, 1, STORE_CHECK, twenty);
                ask(1, 1, STORE_CHECK, twenty);
                ask(2, 1, STORE_CHECK, others);
                ask(3, 1, STORE_CHECK, twenty);
                ask(0, 2, STORE_FETCH, twenty);
                relays_settle(rs);
                assert_int_equal(sent(STORE_CHECK), 2 * (round + 1));
                for (int i = 1; i < 4; i++)
                        expect(i, "1 ok");
        }
}

TEST_WITH(set_up, tear_down, what_is_on_its_way_is_not_joined)
{
        ask(0, 1, STORE_CHECK, "k");
        all_up(); /* the head has said no ... */
        elsewhere_set("k", "v");
        ask(1, 1, STORE_CHECK, "k"); /* ... which would be wrong for those who come now */
        ask(2, 1, STORE_CHECK, "k");
        all_up();
        assert_int_equal(sent(STORE_CHECK), 1);
        all_down();
        expect(0, "1 ok");
        expect(1, "");
        relays_settle(rs);
        assert_int_equal(sent(STORE_CHECK), 2);
        expect(1, "1 ok 1");
        expect(2, "1 ok 1");
}

static void wait_together(uint8_t op, const char *answer)
{
        ask(0, 1, op, "k");
        all_up();
        ask(1, 1, op, "k");
        ask(2, 1, op, "k");
        all_up();
        ask(3, 1, op, "k");
        all_up();
        elsewhere_set("k", "v");
        relays_settle(rs);
        for (int i = 0; i < 4; i++)
                expect(i, answer);
        assert_int_equal(sent(op), 1);
}

TEST_WITH(set_up, tear_down, a_wait_under_way_is_joined)
{
        wait_together(STORE_WAIT, "1 ok");
        assert_int_equal(sent(STORE_JOIN), 2); /* one a turn */
}

TEST_WITH(set_up, tear_down, a_get_under_way_is_joined)
{
        wait_together(STORE_GET, "1 ok 'v'");
        assert_int_equal(sent(STORE_JOIN), 2);
}

TEST_WITH(set_up, tear_down, a_late_join_is_asked_for_again)
{
        ask(0, 1, STORE_GET, "k");
        all_up();
        ask(1, 1, STORE_GET, "k");
        all_up();
        elsewhere_set("k", "old"); /* answers the first two */
        elsewhere_set("k", "new");
        ask(2, 1, STORE_GET, "k");
        all_up();
        all_down();
        expect(0, "1 ok 'old'");
        expect(1, "1 ok 'old'");
        expect(2, "");
        relays_settle(rs);
        expect(2, "1 ok 'new'");
        assert_int_equal(sent(STORE_GET), 2);
}

TEST_WITH(set_up, tear_down, an_item_of_a_queue_is_for_one)
{
        ask(0, 1, STORE_WAIT, "q");
        ask(1, 1, STORE_WAIT, "q");
        ask(2, 1, STORE_WAIT, "q");
        relays_settle(rs);
        ask_all(4, 1, STORE_PUSH, "q", "x", 0);
        relays_settle(rs);
        expect(0, "1 ok");
        expect(1, "");
        ask(0, 2, STORE_POP, "q");
        relays_settle(rs);
        expect(0, "2 ok 1 'x'");
        expect(1, ""); /* asked again behind the POP, which left nothing */
        ask_all(4, 2, STORE_PUSH, "q", "y", 0);
        relays_settle(rs);
        expect(1, "1 ok");
        expect(2, "");
        go(1); /* without its POP: the item is still there, for the next one */
        relays_settle(rs);
        expect(2, "1 ok");
}

/* --- order ------------------------------------------------------------------------------------ */

TEST_WITH(set_up, tear_down, a_client_reads_what_it_wrote_without_waiting)
{
        elsewhere_set("k", "old");
        ask(0, 1, STORE_GET, "k");
        all_up(); /* answered with the old value, which is on its way */
        ask(1, 1, STORE_FETCH, "k");
        set(1, 2, "k", "own");
        ask(1, 3, STORE_GET, "k");
        add(1, 4, "n", 1);
        relays_settle(rs);
        expect(0, "1 ok 'old'");
        assert_non_null(strstr((const char *)buf_data(&clients[1].said), "3 ok 'own'"));
}

TEST_WITH(set_up, tear_down, a_number_is_added_to_what_was_written_before)
{
        add(0, 1, "n", 1);
        relays_turn(rs, 0);
        set(1, 1, "n", "100");
        add(1, 2, "n", 1);
        relays_settle(rs);
        expect(0, "1 ok 1");
        expect(1, "1 ok | 2 ok 101");
}

TEST_WITH(set_up, tear_down, what_cannot_be_shared_leaves_at_once)
{
        set(0, 1, "k", "u");
        set(1, 1, "k", "v");
        ask_all(2, 1, STORE_APPEND, "k", "w", 0);
        ask(3, 1, STORE_DELETE, "k");
        assert_int_equal(sent(STORE_SET), 2);
        assert_int_equal(sent(STORE_APPEND) + sent(STORE_DELETE), 2);
        relays_settle(rs);
        expect(2, "1 ok 2");
        expect(3, "1 ok 1");
}

static struct bytes later_key;

static void ask_from_inside(void *ctx, const struct store_reply *r)
{
        struct client *c = ctx;

        on_reply(ctx, r);
        if (r->tag < 3)
                relay_request(c->peer, &(struct store_request){ .op = STORE_GET,
                                                                .tag = r->tag + 1,
                                                                .key = later_key });
}

TEST_WITH(set_up, tear_down, an_answer_may_make_new_requests)
{
        const struct relay_client_ops ops = { .reply = ask_from_inside };

        later_key = bytes_of("k");
        elsewhere_set("k", "v");
        for (int i = 0; i < 2; i++) {
                go(i);
                clients[i].peer = relay_client_create(relay_of(i), ops, &clients[i]);
                ask(i, 1, STORE_GET, "k");
        }
        relays_settle(rs);
        expect(0, "1 ok 'v' | 2 ok 'v' | 3 ok 'v'");
        expect(1, "1 ok 'v' | 2 ok 'v' | 3 ok 'v'");
        assert_int_equal(sent(STORE_GET), 3);
}

/* --- giving up -------------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, a_cancel_is_answered_at_once)
{
        ask(0, 1, STORE_WAIT, "a b");
        ask(1, 7, STORE_WAIT, "a b");
        ask(2, 1, STORE_GET, "a");
        relays_settle(rs);
        cancel(0, 1);
        expect(0, "1 timeout of 2 keys, `a` first, not all are there");
        cancel(2, 1);
        expect(2, "1 timeout key `a` is not there");
        assert_int_equal(sent(STORE_CANCEL), 1); /* of the GET: nobody is left there */
        cancel(0, 1);                            /* it has its answer */
        cancel(1, 7);
        assert_int_equal(sent(STORE_CANCEL), 2);
        relays_settle(rs); /* late answers are nobody's */
        expect(0, "");
        expect(1, "7 timeout of 2 keys, `a` first, not all are there");
        expect(2, "");
        ask(0, 1, STORE_WAIT, "a b"); /* nothing of the old flight is left */
        elsewhere_set("a", "1");
        elsewhere_set("b", "1");
        relays_settle(rs);
        expect(0, "1 ok");
        assert_int_equal(sent(STORE_WAIT), 2);
}

TEST_WITH(set_up, tear_down, a_cancelled_request_that_has_not_left_stays_at_home)
{
        ask(0, 1, STORE_GET, "k");
        cancel(0, 1);
        expect(0, "1 timeout key `k` is not there");
        relays_settle(rs);
        assert_int_equal(relay_counts(relay_of(0)).up, 0);
}

TEST_WITH(set_up, tear_down, the_library_has_the_head_look_once_more)
{
        go(0);
        come(0, true);
        elsewhere_set("there", "v");
        ask(0, 1, STORE_GET, "there");
        cancel(0, 1);
        ask(0, 2, STORE_GET, "not-there");
        ask(0, 3, STORE_WAIT, "there a b");
        relays_turn(rs, 0);
        cancel(0, 2);
        cancel(0, 2);
        cancel(0, 3);
        relays_settle(rs);
        expect(0, "1 ok 'v' | 2 timeout key `not-there` is not there"
                  " | 3 timeout 2 keys, `a` first, are not there");
        assert_int_equal(sent(STORE_GET), 3);
}

TEST_WITH(set_up, tear_down, requests_of_only_a_closed_client_are_cancelled)
{
        ask(0, 1, STORE_WAIT, "k");
        ask(1, 1, STORE_WAIT, "k");
        relays_settle(rs);
        go(0);
        assert_int_equal(sent(STORE_CANCEL), 0);
        go(1);
        assert_int_equal(sent(STORE_CANCEL), 1);
        ask(2, 1, STORE_WAIT, "k");
        elsewhere_set("k", "v");
        relays_settle(rs);
        expect(2, "1 ok");
        assert_int_equal(sent(STORE_GONE), 0); /* the head has not heard of any of them */
        come(0, false);
        come(1, false);
}

TEST_WITH(set_up, tear_down, a_tag_is_used_once_at_a_time)
{
        ask(0, 1, STORE_GET, "k");
        ask(0, 1, STORE_GET, "l");
        expect(0, "1 invalid the tag is in use");
}

/* --- long answers ----------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, a_long_answer_is_put_together)
{
        set_megabytes("a", 10);
        set_megabytes("b", 9);
        set_megabytes("c", 8);
        ask(0, 1, STORE_FETCH, "a b none c");
        ask(1, 1, STORE_FETCH, "a b none c");
        relays_settle(rs);
        expect(0, "1 ok 3");
        assert_int_equal(clients[0].bytes, 4 * sizeof(uint64_t) + (27 << 20));
        assert_int_equal(clients[1].bytes, clients[0].bytes);
        assert_int_equal(sent(STORE_FETCH), 3); /* all, then halves */
}

TEST_WITH(set_up, tear_down, an_answer_without_end_is_refused)
{
        char keys[40] = "";

        set_megabytes("a", 16);
        for (int i = 0; i < 17; i++)
                strcat(keys, "a ");
        ask(0, 1, STORE_FETCH, keys);
        relays_settle(rs);
        expect(0, "1 big the answer is too large");
}

/* --- what all are told ------------------------------------------------------------------------ */

TEST_WITH(set_up, tear_down, news_reach_everybody)
{
        ask(0, 1, STORE_GET, "k");
        relays_settle(rs);
        ask(1, 1, STORE_GET, "k");
        relays_turn(rs, 0);
        store_server_rank_failed(relays_store_server(rs), 4, "rank 4 is dead");
        relays_settle(rs);
        expect(0, "event 1 of 4 | 1 peer rank 4 is dead");
        expect(1, "event 1 of 4 | 1 peer rank 4 is dead");
        expect(5, "event 1 of 4");
}

/* --- what people ask -------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, what_a_client_waits_for_can_be_told)
{
        struct relay_pending p;

        assert_false(relay_client_pending(clients[0].peer, &p));
        assert_int_equal(relay_client_seen(clients[0].peer), 0);
        relays_now = 10;
        ask(0, 1, STORE_WAIT, "first second");
        relays_now = 20;
        ask(0, 2, STORE_GET, "other");
        set(0, 3, "third", "v");
        relays_settle(rs);
        assert_true(relay_client_pending(clients[0].peer, &p));
        assert_int_equal(p.op, STORE_WAIT);
        assert_int_equal(p.n_keys, 2);
        assert_int_equal(p.key.len, 5);
        assert_memory_equal(p.key.p, "first", 5);
        assert_int_equal(p.since_ns, 10);
        assert_int_equal(relay_client_seen(clients[0].peer), 20);
        cancel(0, 1);
        assert_true(relay_client_pending(clients[0].peer, &p));
        assert_int_equal(p.op, STORE_GET);
        assert_memory_equal(p.key.p, "other", 5);
        assert_int_equal(relay_counts(relay_of(0)).requests, 4);
        assert_int_equal(relay_counts(relay_of(0)).up, 4); /* the CANCEL too */
        assert_int_equal(relay_counts(relay_of(0)).down, 1);
}

TEST_WITH(set_up, tear_down, nonsense_of_the_head_is_told)
{
        struct store_reply nobody = { .client = 77, .tag = 1, .number = 5 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct error err;

        assert_int_equal(relay_deliver(relay_of(0), "\0\0\0\0\2\0\0\0\0", 9, &err), -EPROTO);
        assert_string_equal(err.text, "the head sent a store message of kind 2");
        assert_int_equal(relay_deliver(relay_of(0), "\0\0\0\0\200\0\0\0\0", 9, &err), -EPROTO);
        store_reply_encode(&b, &nobody); /* late ones are no nonsense */
        assert_int_equal(relay_deliver(relay_of(0), buf_data(&b), buf_len(&b), &err), 0);
        buf_clear(&b);
        nobody.client = STORE_NODE;
        store_reply_encode(&b, &nobody);
        assert_int_equal(relay_deliver(relay_of(0), buf_data(&b), buf_len(&b), &err), 0);
}
