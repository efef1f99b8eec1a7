/* SPDX-License-Identifier: Apache-2.0 */
#include "head/term/escapes.h"

#include "lib/unit.h"

/* Whole and byte by byte: both ways must give the same. */
static void expect(bool alone, const char *in, const char *want)
{
        struct escapes whole = ESCAPES_INIT, bytes = ESCAPES_INIT;
        CLEANUP(buf_finish) struct buf a = BUF_INIT, b = BUF_INIT;

        escapes_filter(&whole, &a, in, strlen(in), alone);
        for (const char *c = in; *c; c++)
                escapes_filter(&bytes, &b, c, 1, alone);
        buf_append(&a, "", 1);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&a), want);
        assert_string_equal((const char *)buf_data(&b), want);
}

TEST(text_passes)
{
        expect(false, "plain\ttext\r\n", "plain\ttext\r\n");
        expect(false, "gr\xc3\xbc\xc3\x9f, \xc2\xb5s, \xe2\x9c\x94\n",
               "gr\xc3\xbc\xc3\x9f, \xc2\xb5s, \xe2\x9c\x94\n");
        expect(false, "bell\a backspace\b null\x01 delete\x7f", "bell backspace null delete");
}

TEST(colours_pass_and_do_not_leave_their_line)
{
        expect(false, "\033[31mred\033[0m\n", "\033[31mred\033[0m\n");
        expect(false, "\033[1m\033[31mred\nstill\033[m\nplain\n",
               "\033[1m\033[31mred\033[0m\n\033[1m\033[31mstill\033[m\nplain\n");
        expect(false, "\033[38:5:200mx\033[0m", "\033[38:5:200mx\033[0m");
}

TEST(colours_do_not_leave_the_state_of_a_line)
{
        expect(false, "\033[31m10%\r20%\n", "\033[31m10%\033[0m\r\033[31m20%\033[0m\n");
        expect(true, "\033[31m10%\r20%\n", "\033[31m10%\r20%\033[0m\n");
}

TEST(sequences_that_move_ask_or_switch_are_dropped)
{
        expect(false, "a\033[2Jb\033[10;10Hc\033[1Ad\033[6ne\033[?1049hf\033cg\033(0h", "abcdefgh");
        expect(false, "t\033]0;title\ai\033]52;c;aGk=\033\\t\033P1$r\033\\l\033_x\033\\e", "title");
        expect(false,
               "c\xc2\x9b"
               "2Jone\xc2\x9d"
               "0;x\a!",
               "cone!");
        expect(false, "\033[>4;2mkeyboard\033[=1u", "keyboard");
}

TEST(a_prefix_cannot_be_turned_around)
{
        expect(false, "a\xe2\x80\xaexyz\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f!\n", "axyz!\n");
        expect(false, "one\xe2\x80\xa8two\xe2\x80\xa9\xc2\x85three\n", "onetwothree\n");
        expect(true, "a\xe2\x80\x8fz\n", "a\xe2\x80\x8fz\n");
        /* What joins emoji and letters passes. */
        expect(false, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
               "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb");
        /* Nor out of pieces between which something is dropped. */
        expect(false, "\xe2\033[2J\x80\xae!", "\xe2\xae!");
        expect(false, "\xe2\x80\033[2J\xae!", "\xe2\xae!");
        expect(false, "\xd8\a\x9c!", "\xd8!");
}

TEST(bytes_outside_of_characters_are_no_commands)
{
        expect(false,
               "a\x9b"
               "2Jb\x9d"
               "0;x\ac",
               "a2Jb0;xc");
        expect(false, "caf\xe9 na\xefve\xe9\n", "caf\xe9 na\xefve\xe9\n"); /* Latin-1 */
        expect(false, "\xed\xa0\x80\xf4\xbf\xbf\xbf!", "!"); /* half a pair, too large */
}

TEST(an_unfinished_sequence_swallows_no_line)
{
        expect(false, "a\033]0;never ended\nnext\n", "a\nnext\n");
        expect(false, "a\033[12\nnext\n", "a\nnext\n");
        expect(false, "a\033\nnext\n", "a\nnext\n");
        expect(false, "a\033(\nnext\n", "a\nnext\n");
        expect(false, "a\033]0;x\033\nnext\n", "a\nnext\n");
        expect(false, "a\302\nnext\n", "a\nnext\n");
}

TEST(a_lone_rank_may_draw_its_progress)
{
        expect(true, "10%\r\033[K20%\033[1A\b", "10%\r\033[K20%\033[1A\b");
        expect(true, "\033[6n\033]0;x\a\033[?25l", "");
}

TEST(sequences_without_end_are_bounded)
{
        char in[4096];

        memset(in, '1', sizeof(in) - 1);
        memcpy(in, "\033[", 2);
        memcpy(in + sizeof(in) - 4, "mok", 4);
        expect(false, in, "ok");
}
