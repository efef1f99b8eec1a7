/* SPDX-License-Identifier: Apache-2.0 */
#include "base/token.h"

#include "lib/unit.h"

TEST(tokens_have_their_length_and_differ)
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

TEST(every_character_occurs)
{
        char text[4097];

        token_make(text, sizeof(text) - 1);
        for (const char *c = "abcdefghijkmnpqrstuvwxyz23456789"; *c; c++)
                assert_non_null(strchr(text, *c));
}
