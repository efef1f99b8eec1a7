/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "head/model/job_state.h"

/* What a job in a state becomes by CONNECT, ANSWERED, LAUNCH, STOP, HURRY, EMPTY, AGAIN, LEAVE and
 * GONE: its letter, '.' = it stays. */
static const char letters[] = "nCRrskOELl";
static const char *const expected[COURSE_STATES] = {
        [COURSE_NEW] = "C........",      [COURSE_CONNECTING] = ".R.......",
        [COURSE_READY] = "..r....L.",    [COURSE_RUNNING] = "...skO.L.",
        [COURSE_STOPPING] = "....kO.L.", [COURSE_KILLING] = ".....E.L.",
        [COURSE_OVER] = "......RL.",     [COURSE_ENDED] = ".......L.",
        [COURSE_LEAVING] = "........l",  [COURSE_LEFT] = ".........",
};

static void every_event_in_every_state(void **unused UNUSED)
{
        for (enum course c = 0; c < COURSE_STATES; c++)
                for (enum course_event e = 0; e < COURSE_EVENTS; e++) {
                        enum course next = c;
                        bool changed = course_step(&next, e);
                        char letter = expected[c][e];

                        assert_int_equal(changed, letter != '.');
                        assert_int_equal(changed, next != c);
                        if (changed)
                                assert_int_equal(letters[next], letter);
                }
}

/* States that can follow @from, by any events. */
static unsigned followers(enum course from)
{
        unsigned seen = 1u << from, before = 0;

        while (before != seen) {
                before = seen;
                for (enum course c = 0; c < COURSE_STATES; c++)
                        for (enum course_event e = 0; seen >> c & 1 && e < COURSE_EVENTS; e++) {
                                enum course next = c;

                                course_step(&next, e);
                                seen |= 1u << next;
                        }
        }
        return seen;
}

static void every_course_can_come_to_its_end(void **unused UNUSED)
{
        for (enum course c = 0; c < COURSE_STATES; c++)
                assert_true(followers(c) >> COURSE_LEFT & 1);
        assert_int_equal(followers(COURSE_NEW), (1u << COURSE_STATES) - 1);
}

static void hurry_allows_no_other_attempt(void **unused UNUSED)
{
        unsigned all = followers(COURSE_KILLING);

        assert_false(all >> COURSE_READY & 1);
        assert_false(all >> COURSE_RUNNING & 1);
}

/* A rank that was told to end can only be told again, and harder. */
static void stopping_is_never_taken_back_within_an_attempt(void **unused UNUSED)
{
        for (enum course_event e = 0; e < COURSE_EVENTS; e++) {
                enum course c = COURSE_STOPPING;

                course_step(&c, e);
                assert_true(c >= COURSE_STOPPING);
        }
}

static void predicates_agree_with_the_names(void **unused UNUSED)
{
        for (enum course c = 0; c < COURSE_STATES; c++) {
                const char *name = course_name(c);
                bool stops = !strcmp(name, "STOPPING") || !strcmp(name, "KILLING");

                assert_int_equal(course_stops(c), stops);
                assert_int_equal(course_runs(c), stops || !strcmp(name, "RUNNING"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_event_in_every_state),
                cmocka_unit_test(every_course_can_come_to_its_end),
                cmocka_unit_test(hurry_allows_no_other_attempt),
                cmocka_unit_test(stopping_is_never_taken_back_within_an_attempt),
                cmocka_unit_test(predicates_agree_with_the_names),
        };

        return cmocka_run_group_tests_name("course", tests, NULL, NULL);
}
