/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh/files/algorithms.h"

#include "base/memory.h"
#include "lib/unit.h"

#define GCM     "aes128-gcm@openssh.com,aes256-gcm@openssh.com"
#define CHACHA  "chacha20-poly1305@openssh.com"
#define DEFAULT GCM "," CHACHA ",aes256-ctr,aes128-ctr"

TEST(lists_are_expanded_as_ssh_does)
{
        static const struct {
                const char *wish, *want;
        } cases[] = {
                { NULL, DEFAULT },
                { "aes128-ctr,aes256-ctr", "aes128-ctr,aes256-ctr" },
                { "aes128-ctr,nobody-has-this", "aes128-ctr" },
                { "aes128-ctr,,aes128-ctr", "aes128-ctr" },
                { "aes128-ct?", "aes128-ctr" },
                { "*-ctr", "aes256-ctr,aes128-ctr,aes192-ctr" },
                { "+aes192-ctr,aes128-ctr", DEFAULT ",aes192-ctr" },
                { "+3des-*", DEFAULT ",3des-cbc" },
                { "+nobody-has-this", DEFAULT },
                { "^aes128-ctr", "aes128-ctr," GCM "," CHACHA ",aes256-ctr" },
                { "^nobody-has-this", DEFAULT },
                { "-aes*", CHACHA },
                { "-aes256-ctr,chacha*", GCM ",aes128-ctr" },
                { "-nobody-has-this", DEFAULT },
                { "-aes*,chacha20*", NULL },
                { "-*", NULL },
                { "nobody-has-this", NULL },
                { "[a]es128-ctr", NULL },
                { "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *got = algorithms_expand(ALGORITHM_CIPHER, cases[i].wish);

                if (cases[i].want)
                        assert_string_equal(got ? got : "none", cases[i].want);
                else
                        assert_null(got);
        }
}

TEST(patterns_cost_little)
{
        static const char many[] = "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
        char *got = algorithms_expand(ALGORITHM_HOST_KEY, many);

        assert_null(got);
}

TEST(each_kind_has_defaults)
{
        for (int kind = 0; kind < ALGORITHM_KINDS; kind++) {
                CLEANUP(free_textp)
                char *plain = algorithms_expand((enum algorithm_kind)kind, NULL);
                CLEANUP(free_textp) char *all = algorithms_expand((enum algorithm_kind)kind, "*");
                CLEANUP(free_textp)
                char *added = algorithms_expand((enum algorithm_kind)kind, "+*");

                assert_non_null(algorithms_keyword((enum algorithm_kind)kind));
                assert_memory_equal(all, plain, strlen(plain));
                assert_string_equal(added, all);
        }
}
