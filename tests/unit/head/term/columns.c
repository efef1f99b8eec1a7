/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>

#include "head/term/columns.h"
#include "lib/unit.h"

#define WIDE "\xe7\xaf\x80" /* two columns */

static size_t count(const char *s)
{
        return columns_count(s, strlen(s));
}

TEST(characters_have_their_width)
{
        assert_int_equal(count(""), 0);
        assert_int_equal(count("gpu001"), 6);
        assert_int_equal(count("gr\xc3\xbc\xc3\x9f"), 4);
        assert_int_equal(count("e\xcc\x81"), 1);
        assert_int_equal(count(WIDE WIDE "1"), 5);
        assert_int_equal(count("\033[1;31mred\033[0m"), 3);
        assert_int_equal(count("\xff\xfe"), 2);
        assert_int_equal(count("cut \xe7\xaf"), 6);
        assert_int_equal(count("\033["), 0);
}

static void expect_short(const char *s, size_t columns, const char *want)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        columns_shorten(&b, s, columns);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
        assert_true(count((const char *)buf_data(&b)) <= columns);
}

TEST(long_texts_lose_their_middle)
{
        expect_short("gpu001.example", 14, "gpu001.example");
        expect_short("gpu001.example", 13, "gpu00...ample");
        expect_short("gpu001.example", 5, "g...e");
        expect_short("gpu001.example", 4, "gpu0");
        expect_short("gpu001.example", 0, "");
        expect_short(WIDE WIDE WIDE WIDE WIDE WIDE, 9, WIDE "..." WIDE);
        expect_short(WIDE WIDE WIDE WIDE WIDE WIDE, 3, WIDE);
        for (size_t n = 0; n < 40; n++) {
                CLEANUP(buf_finish) struct buf b = BUF_INIT;

                columns_shorten(&b, WIDE "e\xcc\x81 and \xff " WIDE WIDE " of a host", n);
                assert_true(columns_count((const char *)buf_data(&b), buf_len(&b)) <= n);
        }
}

static void expect_cut(const char *s, size_t columns, const char *want)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        columns_cut(&b, s, columns);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
        assert_true(count((const char *)buf_data(&b)) <= columns);
}

TEST(long_texts_lose_their_end)
{
        expect_cut("rank 5 is slow: others wait 35 %", 32, "rank 5 is slow: others wait 35 %");
        expect_cut("rank 5 is slow: others wait 35 %", 31, "rank 5 is slow: others wait 35…");
        expect_cut("rank 5 is slow: others wait 35 %", 30, "rank 5 is slow: others wait…");
        expect_cut("rank 5 is slow: others wait 35 %", 16, "rank 5 is slow:…");
        expect_cut("rank 5  is slow", 9, "rank 5…");
        expect_cut("python /a/very/long/path/of/train.py", 20, "python /a/very/long…");
        expect_cut("gpu001.example", 13, "gpu001.examp…");
        expect_cut("gpu001.example", 1, "…");
        expect_cut("gpu001.example", 0, "");
        expect_cut(WIDE WIDE WIDE, 5, WIDE WIDE "…");
        expect_cut(WIDE WIDE WIDE, 4, WIDE "…");
        setlocale(LC_CTYPE, "C");
        expect_cut("gpu001.example", 13, "gpu001.exa...");
        setlocale(LC_CTYPE, "C.UTF-8");
}

int main(void)
{
        setlocale(LC_CTYPE, "C.UTF-8");
        return unit_run(NULL, NULL);
}
