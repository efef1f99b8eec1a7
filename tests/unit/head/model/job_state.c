/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/job_state.h"

#include "lib/unit.h"

/* The letter of the next state after CONNECT, ANSWERED, LAUNCH, STOP, HURRY, EMPTY, AGAIN, LEAVE
 * and GONE; '.' = no change. */
static const char letters[] = "nCRrskOELl";
static const char *const expected[JOB_STATES] = {
        [JOB_NEW] = "C........",     [JOB_CONNECTING] = ".R.......", [JOB_READY] = "..r....L.",
        [JOB_RUNNING] = "...skO.L.", [JOB_STOPPING] = "....kO.L.",   [JOB_KILLING] = ".....E.L.",
        [JOB_OVER] = "......RL.",    [JOB_ENDED] = ".......L.",      [JOB_LEAVING] = "........l",
        [JOB_LEFT] = ".........",
};

TEST(every_event_in_every_state)
{
        for (enum job_state c = 0; c < JOB_STATES; c++)
                for (enum job_event e = 0; e < JOB_EV_EVENTS; e++) {
                        enum job_state next = c;
                        bool changed = job_state_step(&next, e);
                        char letter = expected[c][e];

                        assert_int_equal(changed, letter != '.');
                        assert_int_equal(changed, next != c);
                        if (changed)
                                assert_int_equal(letters[next], letter);
                }
}

/* Returns the states reachable from @from. */
static unsigned followers(enum job_state from)
{
        unsigned seen = 1u << from, before = 0;

        while (before != seen) {
                before = seen;
                for (enum job_state c = 0; c < JOB_STATES; c++)
                        for (enum job_event e = 0; seen >> c & 1 && e < JOB_EV_EVENTS; e++) {
                                enum job_state next = c;

                                job_state_step(&next, e);
                                seen |= 1u << next;
                        }
        }
        return seen;
}

TEST(every_job_state_can_reach_the_end)
{
        for (enum job_state c = 0; c < JOB_STATES; c++)
                assert_true(followers(c) >> JOB_LEFT & 1);
        assert_int_equal(followers(JOB_NEW), (1u << JOB_STATES) - 1);
}

TEST(hurry_allows_no_other_attempt)
{
        unsigned all = followers(JOB_KILLING);

        assert_false(all >> JOB_READY & 1);
        assert_false(all >> JOB_RUNNING & 1);
}

/* An order to end can only be followed by a stronger order. */
TEST(stopping_is_never_taken_back_within_an_attempt)
{
        for (enum job_event e = 0; e < JOB_EV_EVENTS; e++) {
                enum job_state c = JOB_STOPPING;

                job_state_step(&c, e);
                assert_true(c >= JOB_STOPPING);
        }
}

TEST(predicates_agree_with_the_names)
{
        for (enum job_state c = 0; c < JOB_STATES; c++) {
                const char *name = job_state_name(c);
                bool stops = !strcmp(name, "STOPPING") || !strcmp(name, "KILLING");

                assert_int_equal(job_state_stops(c), stops);
                assert_int_equal(job_state_runs(c), stops || !strcmp(name, "RUNNING"));
        }
}
