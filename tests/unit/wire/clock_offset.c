/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/clock_offset.h"

#include "lib/unit.h"

enum { US = 1000, MS = 1000 * US, AHEAD = 5000 * US };

/* A ping at @sent, answered in the middle by a clock AHEAD of this one. */
static void pong(struct clock_offset *c, int64_t sent, int64_t there, int64_t back)
{
        clock_offset_pong(c,
                          &(struct ping){ .head_ns = (uint64_t)sent,
                                          .agent_ns = (uint64_t)(sent + there + AHEAD) },
                          sent + there + back);
}

TEST(half_a_round_trip_is_the_error)
{
        struct clock_offset c = CLOCK_OFFSET_INIT;
        int64_t sent = 1000LL * MS;

        assert_true(clock_offset_error(&c, sent) > 1LL << 60);
        pong(&c, sent, 100 * US, 300 * US);
        assert_int_equal(c.error_ns, 200 * US);
        assert_true(llabs(c.offset_ns - AHEAD) <= c.error_ns);
        pong(&c, sent, 100 * US, 100 * US);
        assert_int_equal(c.error_ns, 100 * US);
        assert_int_equal(c.offset_ns, AHEAD);
        pong(&c, sent + 1 * MS, 0, 300 * US);
        assert_int_equal(c.offset_ns, AHEAD);
}

TEST(what_is_old_counts_less)
{
        struct clock_offset c = CLOCK_OFFSET_INIT;
        int64_t sent = 1000LL * MS;

        pong(&c, sent, 10 * US, 10 * US);
        assert_int_equal(clock_offset_error(&c, c.synced_ns + 10000LL * MS), 10 * US + 1 * MS);
        pong(&c, sent + 10000LL * MS, 800 * US, 800 * US);
        assert_int_equal(c.error_ns, 800 * US);
}

TEST(the_answer_to_a_last_ping_says_nothing)
{
        struct clock_offset c = CLOCK_OFFSET_INIT;

        pong(&c, 1000LL * MS, 100 * US, 100 * US);
        clock_offset_pong(&c, &(struct ping){ .head_ns = 0, .agent_ns = 77 }, 2000LL * MS);
        assert_int_equal(c.offset_ns, AHEAD);
}

/* As the head does with a clock reported by a parent. */
TEST(what_is_heard_counts_when_it_is_better)
{
        struct clock_offset c = CLOCK_OFFSET_INIT, unknown = CLOCK_OFFSET_INIT;

        clock_offset_hear(&c, -3 * MS, 40 * US, 7 * MS);
        assert_int_equal(c.offset_ns, -3 * MS);
        clock_offset_hear(&c, -4 * MS, 50 * US, 7 * MS);
        clock_offset_hear(&c, -5 * MS, clock_offset_error(&unknown, 7 * MS) + 1 * US, 7 * MS);
        assert_int_equal(c.offset_ns, -3 * MS);
        clock_offset_hear(&c, -4 * MS, 30 * US, 7 * MS);
        assert_int_equal(c.offset_ns, -4 * MS);
}
