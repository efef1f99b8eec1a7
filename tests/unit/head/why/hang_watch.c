/* SPDX-License-Identifier: Apache-2.0 */
/* When a look at silent ranks is due, and when a hang is told. */
#include "head/why/hang_watch.h"

#include "lib/unit.h"

static struct hang_watch w;

/* Looks after 100 ms of silence, at 1000 ms. */
static int begin(void **state UNUSED)
{
        hang_watch_begin(&w, 100, 1000);
        return 0;
}

TEST_WITH(begin, NULL, a_look_is_due_after_silence_and_then_more_rarely)
{
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

TEST_WITH(begin, NULL, what_ranks_got_from_each_other_is_life)
{
        assert_false(hang_watch_due(&w, 1090, 3));
        assert_false(hang_watch_due(&w, 1180, 3));
        assert_true(hang_watch_due(&w, 1190, 3));
        assert_false(hang_watch_due(&w, 1400, 4));
}

TEST_WITH(begin, NULL, a_hang_is_told_once)
{
        assert_true(hang_watch_due(&w, 1100, 0));
        assert_false(hang_watch_stands(&w, 0));
        assert_true(hang_watch_found(&w, 0, true));
        assert_false(hang_watch_found(&w, 0, true));
        assert_false(hang_watch_due(&w, 9000, 0));
        assert_true(hang_watch_stands(&w, 0));
        assert_false(hang_watch_stands(&w, 1));
        /* Life, and another hang. */
        hang_watch_alive(&w);
        assert_false(hang_watch_stands(&w, 0));
        assert_false(hang_watch_due(&w, 9100, 0));
        assert_true(hang_watch_due(&w, 9200, 0));
        assert_true(hang_watch_found(&w, 0, true));
}

TEST_WITH(begin, NULL, words_about_an_ordered_dump_are_no_life)
{
        assert_true(hang_watch_due(&w, 1100, 0));
        w.dumping = true;
        hang_watch_output(&w);
        assert_false(hang_watch_due(&w, 1150, 0));
        assert_true(hang_watch_found(&w, 0, true));
        w.dumping = false;
        hang_watch_output(&w);
        assert_false(hang_watch_stands(&w, 0));
}

TEST_WITH(begin, NULL, a_look_that_was_asked_for_finds_and_tells_nothing)
{
        assert_false(hang_watch_found(&w, 0, false));
        hang_watch_alive(&w);
        hang_watch_ask(&w, 1050, 0);
        assert_false(hang_watch_stands(&w, 0));
        assert_true(hang_watch_found(&w, 0, false));
        assert_true(hang_watch_stands(&w, 0));
        /* --hang-after tells it in its own time. */
        assert_false(hang_watch_due(&w, 1149, 0));
        assert_true(hang_watch_due(&w, 1150, 0));
        assert_true(hang_watch_found(&w, 0, true));
        /* The ranks go on. */
        hang_watch_alive(&w);
        assert_false(hang_watch_stands(&w, 0));
        assert_false(hang_watch_due(&w, 1200, 0));
        assert_false(hang_watch_stands(&w, 0));
}

TEST(without_looks_of_its_own_one_may_be_asked_for)
{
        hang_watch_begin(&w, 0, 1000);
        hang_watch_alive(&w);
        hang_watch_ask(&w, 1050, 7);
        assert_true(hang_watch_found(&w, 7, false));
        assert_true(hang_watch_stands(&w, 7));
        assert_false(hang_watch_stands(&w, 8));
}

TEST_WITH(begin, NULL, life_during_the_look_is_no_hang)
{
        assert_true(hang_watch_due(&w, 1100, 0));
        assert_false(hang_watch_found(&w, 1, true));
        hang_watch_alive(&w);
        assert_false(hang_watch_found(&w, 0, true));
        /* Also if it is noted before the look ends. */
        assert_false(hang_watch_due(&w, 1150, 0));
        assert_false(hang_watch_found(&w, 0, true));
        hang_watch_ask(&w, 1160, 0);
        assert_false(hang_watch_due(&w, 1170, 1));
        assert_false(hang_watch_found(&w, 1, false));
}

TEST_WITH(begin, NULL, a_look_at_the_attempt_before_tells_nothing)
{
        assert_true(hang_watch_due(&w, 1100, 0));
        hang_watch_begin(&w, 100, 1150);
        assert_false(hang_watch_found(&w, 0, true));
}

TEST(zero_is_never)
{
        hang_watch_begin(&w, 0, 1000);
        assert_false(hang_watch_due(&w, 1000000, 0));
}

TEST_WITH(begin, NULL, silence_counts_from_the_last_sign)
{
        assert_false(hang_watch_due(&w, 1099, 0));
        assert_false(hang_watch_is_silent(&w, 1099));
        assert_true(hang_watch_is_silent(&w, 1100));
        hang_watch_alive(&w);
        assert_false(hang_watch_is_silent(&w, 1200));
        assert_false(hang_watch_due(&w, 1200, 0));
        assert_false(hang_watch_is_silent(&w, 1299));
        assert_true(hang_watch_is_silent(&w, 1300));
        hang_watch_begin(&w, 0, 1000);
        assert_false(hang_watch_is_silent(&w, 9000));
}
