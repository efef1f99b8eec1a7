/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdio.h>

#include "base/printable.h"
#include "lib/unit.h"

static void expect(const char *in, const char *want, size_t width)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT, twice = BUF_INIT;

        assert_int_equal(printable_put(&b, in, strlen(in)), width);
        assert_int_equal(printable_put(NULL, in, strlen(in)), width);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
        printable_put(&twice, want, strlen(want));
        buf_append(&twice, "", 1);
        assert_string_equal((const char *)buf_data(&twice), want);
}

static void expect_cut(const char *in, size_t columns, const char *want)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        printable_cut(&b, in, strlen(in), columns);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
}

TEST(text_stays_as_it_is)
{
        expect("", "", 0);
        expect("plain text", "plain text", 10);
        expect("gr\xc3\xbc\xc3\x9f \xe2\x9c\x94", "gr\xc3\xbc\xc3\x9f \xe2\x9c\x94", 6);
}

TEST(what_moves_or_hides_is_escaped)
{
        expect("\033]0;x\a", "\\x1b]0;x\\x07", 12);
        expect("a\nb\rc", "a\\x0ab\\x0dc", 11);
        expect("\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9",
               "<U+202A><U+202E><U+2066><U+2069>", 32);
        expect("\xc2\x9b"
               "2J",
               "<U+009B>2J", 10);
        expect("\xd8\x9c\xe2\x80\x8e\xe2\x80\xa8\xe2\x80\xa9\xc2\x85",
               "<U+061C><U+200E><U+2028><U+2029><U+0085>", 40);
        expect("\xf3\xa0\x81\x81\xef\xbf\xb9", "<U+E0041><U+FFF9>", 17);
        expect("\xff\xc3", "\\xff\\xc3", 8);
}

static void expect_mask(const char *in, const char *want)
{
        char text[64];

        snprintf(text, sizeof(text), "%s", in);
        printable_mask(text);
        assert_string_equal(text, want);
}

TEST(names_are_masked)
{
        expect_mask("", "");
        expect_mask("x86_64", "x86_64");
        expect_mask("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
        expect_mask("a\nb\033[2J\t\xff", "a?b?[2J??");
        expect_mask("a\xe2\x80\xae", "a???");
}

TEST(a_full_buffer_ends_behind_a_character)
{
        char text[12] = "0123456789a", wide[12] = "01234\xe2\x80\x9cxyz",
             broken[12] = "0123456789\xe2";
        char shorter[12] = "0123456789";

        printable_end(text, sizeof(text));
        assert_string_equal(text, "01234567...");
        printable_end(wide, sizeof(wide));
        assert_string_equal(wide, "01234\xe2\x80\x9c...");
        printable_end(broken, sizeof(broken));
        assert_string_equal(broken, "01234567...");
        printable_end(shorter, sizeof(shorter));
        assert_string_equal(shorter, "0123456789");
}

TEST(lines_stay_lines)
{
        static const char in[] = "one\n\n\033[2Jtwo\r\nthree";
        char got[64] = "";
        FILE *to = fmemopen(got, sizeof(got), "w");

        printable_write(to, in, strlen(in));
        fclose(to);
        assert_string_equal(got, "one\n\n\\x1b[2Jtwo\\x0d\nthree");
}

TEST(a_long_text_is_cut)
{
        expect_cut("0123456789", 10, "0123456789");
        expect_cut("0123456789a", 10, "0123456...");
        expect_cut("012345\n\n", 10, "012345..."); /* an escape is not cut in two */
        if (!setlocale(LC_ALL, "C.UTF-8"))
                skip();
        expect_cut("0123456789a", 10, "012345678\xe2\x80\xa6");
        expect_cut("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 3, "\xc3\xbc\xc3\xbc\xe2\x80\xa6");
}

TEST(a_tail_keeps_the_end_of_a_stream)
{
        char tail[8] = "";

        printable_keep_tail(tail, sizeof(tail), "ab\r\n", 4);
        assert_string_equal(tail, "ab\n");
        printable_keep_tail(tail, sizeof(tail), "cdefg", 5);
        assert_string_equal(tail, "b\ncdefg");
        printable_keep_tail(tail, sizeof(tail), "0123456789", 10);
        assert_string_equal(tail, "3456789");
}
