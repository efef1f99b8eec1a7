/* SPDX-License-Identifier: Apache-2.0 */
/* When a look at silent ranks is due, and when a hang is told. */
#include "head/why/hang_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/macros.h"

static void test_a_look_is_due_after_silence_and_then_more_rarely(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 100, 1000);
        assert_false(hang_watch_due(&w, 1099, 0));
        assert_true(hang_watch_due(&w, 1100, 0));
        assert_false(hang_watch_due(&w, 1199, 0));
        assert_true(hang_watch_due(&w, 1200, 0));
        assert_false(hang_watch_due(&w, 1399, 0));
        assert_true(hang_watch_due(&w, 1400, 0));
        hang_watch_alive(&w);
        assert_false(hang_watch_due(&w, 1500, 0));
        assert_false(hang_watch_due(&w, 1599, 0));
        assert_true(hang_watch_due(&w, 1600, 0));
}

static void test_what_ranks_got_from_each_other_is_life(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 100, 1000);
        assert_false(hang_watch_due(&w, 1090, 3));
        assert_false(hang_watch_due(&w, 1180, 3));
        assert_true(hang_watch_due(&w, 1190, 3));
        assert_false(hang_watch_due(&w, 1400, 4));
}

static void test_a_hang_is_told_once(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 100, 1000);
        assert_true(hang_watch_due(&w, 1100, 0));
        assert_false(hang_watch_stands(&w, 0));
        assert_true(hang_watch_found(&w, 0));
        assert_false(hang_watch_found(&w, 0));
        assert_false(hang_watch_due(&w, 9000, 0));
        assert_true(hang_watch_stands(&w, 0));
        assert_false(hang_watch_stands(&w, 1));
        /* Life, and another hang. */
        hang_watch_alive(&w);
        assert_false(hang_watch_stands(&w, 0));
        assert_false(hang_watch_due(&w, 9100, 0));
        assert_true(hang_watch_due(&w, 9200, 0));
        assert_true(hang_watch_found(&w, 0));
}

static void test_life_during_the_look_is_no_hang(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 100, 1000);
        assert_true(hang_watch_due(&w, 1100, 0));
        assert_false(hang_watch_found(&w, 1));
        hang_watch_alive(&w);
        assert_false(hang_watch_found(&w, 0));
}

static void test_a_look_at_the_attempt_before_tells_nothing(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 100, 1000);
        assert_true(hang_watch_due(&w, 1100, 0));
        hang_watch_begin(&w, 100, 1150);
        assert_false(hang_watch_found(&w, 0));
}

static void test_zero_is_never(void **state UNUSED)
{
        struct hang_watch w;

        hang_watch_begin(&w, 0, 1000);
        assert_false(hang_watch_due(&w, 1000000, 0));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_look_is_due_after_silence_and_then_more_rarely),
                cmocka_unit_test(test_what_ranks_got_from_each_other_is_life),
                cmocka_unit_test(test_a_hang_is_told_once),
                cmocka_unit_test(test_life_during_the_look_is_no_hang),
                cmocka_unit_test(test_a_look_at_the_attempt_before_tells_nothing),
                cmocka_unit_test(test_zero_is_never),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
