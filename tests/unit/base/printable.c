/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/printable.h"

static void expect(const char *in, const char *want, size_t width)
{
        struct buf b = BUF_INIT, twice = BUF_INIT;

        assert_int_equal(printable_put(&b, in, strlen(in)), width);
        assert_int_equal(printable_put(NULL, in, strlen(in)), width);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
        printable_put(&twice, want, strlen(want));
        buf_append(&twice, "", 1);
        assert_string_equal((const char *)buf_data(&twice), want);
        buf_finish(&b);
        buf_finish(&twice);
}

static void expect_cut(const char *in, size_t columns, const char *want)
{
        struct buf b = BUF_INIT;

        printable_cut(&b, in, strlen(in), columns);
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), want);
        buf_finish(&b);
}

static void test_text_stays_as_it_is(void **state UNUSED)
{
        expect("", "", 0);
        expect("plain text", "plain text", 10);
        expect("gr\xc3\xbc\xc3\x9f \xe2\x9c\x94", "gr\xc3\xbc\xc3\x9f \xe2\x9c\x94", 6);
}

static void test_what_moves_or_hides_is_escaped(void **state UNUSED)
{
        expect("\033]0;x\a", "\\x1b]0;x\\x07", 12);
        expect("a\nb\rc", "a\\x0ab\\x0dc", 11);
        expect("\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9",
               "<U+202A><U+202E><U+2066><U+2069>", 32);
        expect("\xc2\x9b"
               "2J",
               "<U+009B>2J", 10);
        expect("\xff\xc3", "\\xff\\xc3", 8);
}

static void test_a_long_text_is_cut(void **state UNUSED)
{
        expect_cut("0123456789", 10, "0123456789");
        expect_cut("0123456789a", 10, "0123456...");
        expect_cut("012345\n\n", 10, "012345..."); /* an escape is not cut in two */
        if (!setlocale(LC_ALL, "C.UTF-8"))
                skip();
        expect_cut("0123456789a", 10, "012345678\xe2\x80\xa6");
        expect_cut("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 3, "\xc3\xbc\xc3\xbc\xe2\x80\xa6");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text_stays_as_it_is),
                cmocka_unit_test(test_what_moves_or_hides_is_escaped),
                cmocka_unit_test(test_a_long_text_is_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
