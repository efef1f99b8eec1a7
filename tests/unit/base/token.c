/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/token.h"

static void test_tokens_have_their_length_and_differ(void **state UNUSED)
{
        char a[33], b[33], none[1] = { 'x' };

        token_make(a, 32);
        token_make(b, 32);
        assert_int_equal(strlen(a), 32);
        assert_int_equal(strspn(a, "abcdefghijkmnpqrstuvwxyz23456789"), 32);
        assert_string_not_equal(a, b);
        token_make(none, 0);
        assert_string_equal(none, "");
}

static void test_every_character_occurs(void **state UNUSED)
{
        char text[4097];

        token_make(text, sizeof(text) - 1);
        for (const char *c = "abcdefghijkmnpqrstuvwxyz23456789"; *c; c++)
                assert_non_null(strchr(text, *c));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tokens_have_their_length_and_differ),
                cmocka_unit_test(test_every_character_occurs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
