/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/step_pace.h"
#include "lib/unit.h"

static void tell_step(struct step_pace *p, int64_t us, int64_t step)
{
        struct event e = { .kind = EVENT_RANK_PROGRESS, .us = us, .value = step };

        step_pace_take(p, &e);
}

TEST(steps_have_a_mean_time)
{
        struct event restart = { .kind = EVENT_RESTART, .us = 9000000 };
        struct step_pace p = { 0 };

        assert_int_equal(step_pace_step_us(&p), 0);
        tell_step(&p, 1000000, 5);
        tell_step(&p, 1100000, 5);
        assert_int_equal(step_pace_step_us(&p), 0);
        tell_step(&p, 3000000, 9);
        assert_int_equal(step_pace_step_us(&p), 500000);
        tell_step(&p, 5000000, 8); /* a slower rank */
        assert_int_equal(step_pace_step_us(&p), 1000000);
        assert_int_equal(p.had_us, 5000000);
        step_pace_take(&p, &restart);
        assert_int_equal(p.had_us, 0);
        assert_int_equal(step_pace_step_us(&p), 0);
}

TEST(ten_step_times_and_ten_seconds_are_long)
{
        assert_false(step_pace_is_still(9999999, 0));
        assert_true(step_pace_is_still(10000000, 0));
        assert_true(step_pace_is_still(10000000, 1000));
        assert_false(step_pace_is_still(599999990, 60000000));
        assert_true(step_pace_is_still(600000000, 60000000));
}

TEST(a_run_without_steps_stands_still_in_a_hang)
{
        struct step_pace p = { 0 };

        assert_int_equal(step_pace_stalled_ms(&p, 99000000, 0), 0);
        assert_int_equal(step_pace_stalled_ms(&p, 99000000, 61000), 61000);
        tell_step(&p, 1000000, 5);
        assert_int_equal(step_pace_stalled_ms(&p, 10999999, 0), 0);
        assert_int_equal(step_pace_stalled_ms(&p, 11000000, 0), 10000);
        assert_int_equal(step_pace_stalled_ms(&p, 6000000, 3000), 5000);
}
