/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/redraw.h"

#include "lib/unit.h"

static ssize_t last(const char *s)
{
        return redraw_last((const unsigned char *)s, strlen(s));
}

static size_t replaced(const char *s)
{
        return redraw_replaced((const unsigned char *)s, strlen(s));
}

TEST(states_lie_between_carriage_returns)
{
        assert_int_equal(last(""), -1);
        assert_int_equal(last("line"), -1);
        assert_int_equal(last("line\r"), -1);
        assert_int_equal(last("\r\r\r"), -1);
        assert_int_equal(last("\r10%"), 0);
        assert_int_equal(last("\r10%\r20%"), 4);
        assert_int_equal(last("10%\r20%\r"), 3);
        assert_int_equal(replaced("10%\r20%"), 0);
        assert_int_equal(replaced("\r10%\r20%"), 0);
        assert_int_equal(replaced("10%\r20%\r30%"), 3);
        assert_int_equal(replaced("10%\r20%\r30%\r\r"), 3);
        assert_int_equal(replaced("10%\r20%\r\r\r30%"), 3);
        assert_int_equal(replaced("\r1\r2\r3\r4"), 4);
        assert_true(redraw_is_blank((const unsigned char *)"   ", 3));
        assert_false(redraw_is_blank((const unsigned char *)" x ", 3));
}

static void expect_joined(const char *pieces[3], const char *want)
{
        CLEANUP(redraw_rows_finish) struct redraw_rows rows = { 0 };
        CLEANUP(buf_finish) struct buf to = BUF_INIT;

        for (int i = 0; i < 3 && pieces[i]; i++)
                redraw_join_rows(&rows, &to, pieces[i], strlen(pieces[i]));
        assert_int_equal(buf_append(&to, "", 1), 0);
        assert_string_equal((const char *)buf_data(&to), want);
}

#define EXPECT_JOINED(want, ...) expect_joined((const char *[3]){ __VA_ARGS__ }, want)

TEST(rows_that_are_drawn_again_become_one)
{
        EXPECT_JOINED("a\nb\n\033[31mc\n", "a\nb\n\033[31mc\n");
        EXPECT_JOINED("a\n\033[", "a\n\033[");
        /* rich: up, and the rows anew; a line above them; the end */
        EXPECT_JOINED("a\nb\r\033[2K\033[1A\033[2Ka b", "a\nb", "\r\033[2K\033[1A\033[2Ka\nb");
        EXPECT_JOINED("\r\033[1A\033[2Ka b\r\033[1A\033[2Kc d",
                      "\r\033[1A\033[2Ka\nb\r\033[1A\033[2Kc\nd");
        EXPECT_JOINED("\r\033[2Alog\na b c", "\r\033[2Alog\na\nb\nc");
        EXPECT_JOINED("\r\033[1Aa b", "\r\033[1A", "a\nb");
        EXPECT_JOINED("\r\033[2Aa b c", "\r\033[2Aa\nb", "\nc");
        EXPECT_JOINED("\r\033[1Aa\nb\n\033[?25hend\nof", "\r\033[1Aa\nb\n\033[?25h", "end\nof");
        /* tqdm below another bar, in pieces */
        EXPECT_JOINED("\ra \rb\033[A\rc", "\ra\n\rb\033[A", "\rc");
        EXPECT_JOINED("\rb\033[A \rc\033[A", "\rb\033[A", "\n\rc\033[A");
        EXPECT_JOINED("\033[A\ra \rb\033[A", "\033[A\ra\n", "\rb", "\033[A");
        EXPECT_JOINED("\033[A\ra", "\033[A\ra\n");
        EXPECT_JOINED("\033[A\ra\n", "\033[A\ra\n", "");
        EXPECT_JOINED("\033[A\ra\nend", "\033[A\ra\n", "end\n");
        EXPECT_JOINED("\033[A\ra\n\rb\rc", "\033[A\ra\n", "\rb", "\rc");
        EXPECT_JOINED("\r\033[99999999999999999999Aa b", "\r\033[99999999999999999999Aa\nb");
}
