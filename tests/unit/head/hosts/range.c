/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/hosts/range.h"
#include "lib/unit.h"

/* Joins the names with commas; malloc'ed. */
static char *joined(const struct strv *names)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < names->n; i++)
                buf_printf(&out, "%s%s", i ? "," : "", names->v[i]);
        return buf_steal(&out);
}

TEST(patterns_become_names)
{
        static const struct {
                const char *pattern, *names;
        } cases[] = {
                { "gpu7", "gpu7" },
                { "gpu[1-3]", "gpu1,gpu2,gpu3" },
                { "gpu[001-003,070]", "gpu001,gpu002,gpu003,gpu070" },
                { "gpu[08-11]", "gpu08,gpu09,gpu10,gpu11" },
                { "gpu[8-11]", "gpu8,gpu9,gpu10,gpu11" },
                { "n[099-101]", "n099,n100,n101" },
                { "n[01-3]", "n01,n02,n03" },
                { "n[1,01,001]", "n1,n01,n001" },
                { "r[1-2]n[1-2]", "r1n1,r1n2,r2n1,r2n2" },
                { "r[1-2]n[01-02].ib", "r1n01.ib,r1n02.ib,r2n01.ib,r2n02.ib" },
                { "[1-3]", "1,2,3" },
                { "n[0-8/2]", "n0,n2,n4,n6,n8" },
                { "n[0-7/3]", "n0,n3,n6" },
                { "n[5]", "n5" },
                { "n[5-5]", "n5" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(strv_finish) struct strv names = STRV_INIT;
                struct range_error e;
                CLEANUP(free_textp) char *got = NULL;

                assert_int_equal(
                        range_expand(cases[i].pattern, strlen(cases[i].pattern), &names, &e), 0);
                got = joined(&names);
                assert_string_equal(got, cases[i].names);
        }
}

TEST(wrong_patterns_say_where_and_why)
{
        static const struct {
                const char *pattern;
                size_t at, len;
                const char *text;
        } cases[] = {
                { "", 0, 1, "a name is missing here" },
                { "n[01-", 1, 4, "this `[` has no `]`" },
                { "n01]", 3, 1, "this `]` has no `[` before it" },
                { "n[]", 2, 1, "a number is missing here" },
                { "n[1,]", 4, 1, "a number is missing here" },
                { "n[1-]", 4, 1, "a number is missing here" },
                { "n[,1]", 2, 1, "expected a number" },
                { "n[a-b]", 2, 1, "expected a number" },
                { "n[1[2]]", 2, 2, "numbers are written 1-4, 7 or 1,2,5-8" },
                { "n[1-2-3]", 2, 4, "numbers are written 1-4, 7 or 1,2,5-8" },
                { "n[001-00x]", 2, 7, "numbers are written 1-4, 7 or 1,2,5-8" },
                { "n[10-1 2]", 2, 5, "numbers are written 1-4, 7 or 1,2,5-8" },
                { "n[1-99999x]", 2, 8, "numbers are written 1-4, 7 or 1,2,5-8" },
                { "n[5-3]", 2, 3, "the range runs backwards" },
                { "n[1-03]", 2, 4, "both ends must have the same number of digits" },
                { "n[1-9/0]", 6, 1, "the step must be at least 1" },
                { "n[1-9/]", 6, 1, "a number is missing here" },
                { "n[1-65537]", 2, 7, "the range has more than 65536 names" },
                { "n[1-60000,1-60000]", 2, 15, "the range has more than 65536 names" },
                { "n[1-300]m[1-300]", 0, 16, "the range has more than 65536 names" },
                { "n[1-9999999999]", 4, 10, "the number has more than 9 digits" },
                { "a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]a[1]", 33, 3, "there are more than 8 brackets" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct strv names = STRV_INIT;
                struct range_error e;

                assert_int_equal(
                        range_expand(cases[i].pattern, strlen(cases[i].pattern), &names, &e),
                        -EINVAL);
                assert_string_equal(e.text, cases[i].text);
                assert_int_equal(e.at, cases[i].at);
                assert_int_equal(e.len, cases[i].len);
                assert_int_equal(names.n, 0);
        }
}

TEST(a_range_may_have_65536_names)
{
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        struct range_error e;

        assert_int_equal(range_expand("r[1-256]n[1-256]", 16, &names, &e), 0);
        assert_int_equal(names.n, RANGE_MAX_NAMES);
        assert_string_equal(names.v[0], "r1n1");
        assert_string_equal(names.v[256], "r2n1");
        assert_string_equal(names.v[65535], "r256n256");
}

TEST(a_name_may_have_253_letters)
{
        struct strv names = STRV_INIT;
        char pattern[RANGE_MAX_NAME + 8];
        struct range_error e;

        memset(pattern, 'n', sizeof(pattern));
        memcpy(pattern + RANGE_MAX_NAME - 1, "[1-2]", 5);
        assert_int_equal(range_expand(pattern, RANGE_MAX_NAME + 4, &names, &e), 0);
        assert_int_equal(strlen(names.v[1]), RANGE_MAX_NAME);
        strv_finish(&names);
        memcpy(pattern + RANGE_MAX_NAME - 1, "[9-10]", 6);
        assert_int_equal(range_expand(pattern, RANGE_MAX_NAME + 5, &names, &e), -EINVAL);
        assert_string_equal(e.text, "the name has more than 253 letters");
        assert_int_equal(names.n, 0);
}

TEST(lists_of_numbers_keep_their_order)
{
        static const struct {
                const char *text;
                int max;
                const int numbers[6];
                size_t n;
        } cases[] = {
                { "0", 7, { 0 }, 1 },      { "0,2,4-6", 7, { 0, 2, 4, 5, 6 }, 5 },
                { "6,0", 7, { 6, 0 }, 2 }, { "0-7/3", 7, { 0, 3, 6 }, 3 },
                { "07", 7, { 7 }, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(intlist_finish) struct intlist numbers = { 0 };
                struct range_error e;

                assert_int_equal(range_numbers(cases[i].text, strlen(cases[i].text), cases[i].max,
                                               &numbers, &e),
                                 0);
                assert_int_equal(numbers.n, cases[i].n);
                assert_memory_equal(numbers.v, cases[i].numbers, cases[i].n * sizeof(int));
        }
}

TEST(wrong_lists_of_numbers_say_where_and_why)
{
        static const struct {
                const char *text;
                size_t at, len;
                const char *why;
        } cases[] = {
                { "", 0, 1, "a number is missing here" },
                { "0,,1", 2, 1, "expected a number" },
                { "0,8", 2, 1, "the highest number here is 7" },
                { "0-99999", 0, 7, "the highest number here is 7" },
                { "1,0-3", 2, 3, "1 is named twice" },
                { "-1", 0, 1, "expected a number" },
                { "1 2", 0, 2, "numbers are written 0, 0-3 or 0,2,4-6" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct intlist numbers = { 0 };
                struct range_error e;

                assert_int_equal(
                        range_numbers(cases[i].text, strlen(cases[i].text), 7, &numbers, &e),
                        -EINVAL);
                assert_string_equal(e.text, cases[i].why);
                assert_int_equal(e.at, cases[i].at);
                assert_int_equal(e.len, cases[i].len);
                assert_int_equal(numbers.n, 0);
        }
}
