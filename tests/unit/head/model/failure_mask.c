/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/failure_mask.h"

#include "lib/unit.h"

TEST(what_differs_between_attempts_is_masked)
{
        static const struct {
                const char *text, *masked;
        } table[] = {
                { "", "" },
                { "ValueError: shard 12 is empty", "ValueError: shard # is empty" },
                { "loss is nan at 1.5e-05 after 3,200 steps", "loss is nan at # after # steps" },
                { "cannot connect to 10.0.0.17:29500", "cannot connect to #" },
                { "cannot connect to [fe80::1:2]:29500", "cannot connect to [#]:#" },
                { "bad pointer 0x7ffd12ab", "bad pointer #" },
                { "no rank on gpu017", "no rank on gpu#" },
                { "[Errno 2] No such file or directory: '/data/a/shard-12.tar'",
                  "[Errno #] No such file or directory: 'PATH'" },
                { "cannot read data/train.bin.", "cannot read PATH." },
                { "File \"./train.py\", line 12", "File \"PATH\", line #" },
                { "object 9f86d081884c7d65 is gone", "object # is gone" },
                { "GPU-3f2a9c1e-55d0-11ee-b4a2-0242ac120002 lost", "GPU-# lost" },
                { "at 12:30:01 rank -1", "at # rank -#" },
                { "decade feedface", "decade feedface" }, /* words without a number */
                { "KeyError: 'a'", "KeyError: 'a'" },
                { "a / b", "a / b" },
                { "std::bad_alloc", "std::bad_alloc" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                char masked[200];

                failure_mask(table[i].text, masked, sizeof(masked));
                if (strcmp(masked, table[i].masked) != 0)
                        fail_msg("%s: %s, not %s", table[i].text, masked, table[i].masked);
        }
}

TEST(a_long_text_is_cut)
{
        char masked[6];

        failure_mask("abc 12 def", masked, sizeof(masked));
        assert_string_equal(masked, "abc #");
        failure_mask("a /x/y", masked, sizeof(masked));
        assert_string_equal(masked, "a PAT");
}
