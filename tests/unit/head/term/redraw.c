/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "head/term/redraw.h"

static ssize_t last(const char *s)
{
        return redraw_last((const unsigned char *)s, strlen(s));
}

static size_t replaced(const char *s)
{
        return redraw_replaced((const unsigned char *)s, strlen(s));
}

static void test_states_lie_between_carriage_returns(void **state UNUSED)
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states_lie_between_carriage_returns),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
