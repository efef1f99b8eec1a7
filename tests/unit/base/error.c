/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/error.h"
#include "lib/unit.h"

TEST(set_gives_the_negative_errno_and_keeps_the_sentence)
{
        struct error err = { 0 };

        assert_int_equal(err_set(&err, ENOENT, "no %s here", "file"), -ENOENT);
        assert_int_equal(err.code, ENOENT);
        assert_string_equal(err.text, "no file here");
}

TEST(wrap_puts_the_context_in_front)
{
        struct error err = { 0 };

        err_set(&err, EPERM, "not allowed");
        assert_int_equal(err_wrap(&err, "gpu%03d", 7), -EPERM);
        assert_string_equal(err.text, "gpu007: not allowed");
}

TEST(too_long_sentences_are_cut_not_overrun)
{
        struct error err = { 0 };
        char long_text[2000];

        memset(long_text, 'a', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        err_set(&err, EINVAL, "%s", long_text);
        assert_true(strlen(err.text) < sizeof(err.text));
        assert_int_equal(err_wrap(&err, "%s", long_text), -EINVAL);
        assert_true(strlen(err.text) < sizeof(err.text));
}

TEST(the_next_step_is_a_line_of_its_own)
{
        struct error err = { 0 };
        char long_text[2000];

        err_set(&err, EPERM, "closed");
        err.number = HN_NO_CONNECTIONS;
        assert_null(err_cut_help(&err));
        assert_int_equal(err_help(&err, "open %d", 2), -EPERM);
        err_wrap(&err, "door");
        assert_string_equal(err_cut_help(&err), "open 2");
        assert_string_equal(err.text, "door: closed");
        assert_int_equal(err.number, HN_NO_CONNECTIONS);

        err_set(&err, EPERM, "closed");
        assert_int_equal(err.number, 0);
        memset(long_text, 'a', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        err_help(&err, "%s", long_text);
        assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
        err_set(&err, EPERM, "%s", long_text);
        assert_int_equal(err_help(&err, "open"), -EPERM);
        assert_null(err_cut_help(&err));
}

TEST(the_sentence_may_be_unwanted)
{
        assert_int_equal(err_set(NULL, EIO, "lost"), -EIO);
}
