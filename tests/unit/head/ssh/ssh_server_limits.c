/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "head/ssh/ssh_server_limits.h"
#include "lib/unit.h"

static struct ssh_servers *set;

static int setup(void **state UNUSED)
{
        set = ssh_servers_create();
        return 0;
}

static int teardown(void **state UNUSED)
{
        ssh_servers_free(set);
        return 0;
}

/* How many of @n are let in at @now. */
static int entered(struct ssh_server *s, int n, uint64_t now)
{
        int in = 0;

        for (int i = 0; i < n; i++)
                in += ssh_server_enter(s, now) == 0;
        return in;
}

static void leave(struct ssh_server *s, int n, enum ssh_server_answer answer, uint64_t now)
{
        for (int i = 0; i < n; i++)
                ssh_server_leave(s, answer, now);
}

TEST_WITH(setup, teardown, host_and_port_make_a_server)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);

        assert_ptr_equal(s, ssh_server_get(set, "n1", 22));
        assert_ptr_not_equal(s, ssh_server_get(set, "n1", 23));
        assert_ptr_not_equal(s, ssh_server_get(set, "n2", 22));
}

TEST_WITH(setup, teardown, all_may_come_until_one_is_dropped)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);

        assert_int_equal(entered(s, 64, 1), 64);
        leave(s, 54, SERVER_DROPPED, 2);
        /* It bore 10. */
        assert_int_equal(entered(s, 64, 3), 0);
        leave(s, 4, SERVER_DECIDED, 4);
        assert_int_equal(entered(s, 64, 5), 4);
}

TEST_WITH(setup, teardown, eight_logins_make_room_for_one_more)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);

        entered(s, 2, 1);
        leave(s, 1, SERVER_DROPPED, 2);
        leave(s, 1, SERVER_DECIDED, 3);
        for (int i = 0; i < 7; i++) {
                assert_int_equal(entered(s, 5, 4), 1);
                leave(s, 1, SERVER_DECIDED, 5);
        }
        assert_int_equal(entered(s, 5, 6), 2);
}

TEST_WITH(setup, teardown, one_may_always_come)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);

        for (int i = 0; i < 100; i++) {
                assert_int_equal(entered(s, 3, 1), i ? 1 : 3);
                leave(s, i ? 1 : 3, SERVER_DROPPED, 1);
        }
}

TEST_WITH(setup, teardown, silence_says_nothing)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);

        entered(s, 9, 1);
        leave(s, 9, SERVER_SILENT, 2);
        assert_int_equal(entered(s, 64, 3), 64);
        assert_int_equal(ssh_server_last_good(s), 0);
}

TEST_WITH(setup, teardown, who_is_turned_away_waits_longer_each_time)
{
        static const uint64_t pauses[] = { 2000, 4000, 8000, 16000, 16000 };
        struct ssh_server *s = ssh_server_get(set, "n1", 22);
        uint64_t now = 1000;
        int wait;

        assert_int_equal(entered(s, 8, now), 8);
        leave(s, 8, SERVER_PENALIZED, now); /* once, however many */
        for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
                wait = ssh_server_enter(s, now);
                assert_in_range(wait, pauses[i], pauses[i] + 100);
                assert_int_not_equal(ssh_server_enter(s, now + pauses[i] - 1), 0);
                now += pauses[i];
                /* Then one asks, and the others wait for what it learns. */
                assert_int_equal(entered(s, 8, now), 1);
                leave(s, 1, SERVER_PENALIZED, now);
        }
        now += 16000;
        assert_int_equal(entered(s, 8, now), 1);
        leave(s, 1, SERVER_DECIDED, now);
        assert_int_equal(ssh_server_last_good(s), now);
        assert_int_equal(entered(s, 8, now), 1);
}

TEST_WITH(setup, teardown, a_refused_user_is_not_tried_for_15_s)
{
        struct ssh_server *s = ssh_server_get(set, "n1", 22);
        struct link_failure why = { .cause = LINK_DENIED }, told = { 0 };

        snprintf(why.fact, sizeof(why.fact), "ssh login refused");
        assert_false(ssh_server_denied(s, "ann", 1000, &told));
        ssh_server_deny(s, "ann", &why, 1000);
        assert_true(ssh_server_denied(s, "ann", 15999, &told));
        assert_int_equal(told.cause, LINK_DENIED);
        assert_string_equal(told.fact, "ssh login refused");
        assert_false(ssh_server_denied(s, "ann", 16000, &told));
        assert_false(ssh_server_denied(s, "bob", 1000, &told));
        assert_false(ssh_server_denied(ssh_server_get(set, "n2", 22), "ann", 1000, &told));
}
