/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that could hang a process are refused, all others are compiled. */
#include <errno.h>

#include "head/core/pattern.h"
#include "lib/unit.h"

static int compile(const char *text)
{
        struct error err;
        regex_t re;
        int r = pattern_compile(&re, text, 0, &err);

        if (!r)
                regfree(&re);
        return r;
}

TEST(usual_expressions_are_compiled)
{
        static const char *const texts[] = {
                "",
                "step ([0-9]+)/([0-9]+)",
                "(a*)*b",
                "(a|aa)*b",
                "((a*)*)*b",
                "[\\1]",
                "[]\\1]",
                "[^]\\1[:alpha:]]",
                "\\\\1",
                "a{2,5}b{,3}c{4,}",
                "x{1,255}",
                "(x{1,30}){1,30}",
                "([0-9]{1,3}\\.){3}[0-9]{1,3}",
                "^(a|b)?$",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (compile(texts[i]) != 0)
                        fail_msg("%s", texts[i]);
}

static int open_timed(const char *text)
{
        struct timed_pattern p;
        struct error err;
        int r = timed_pattern_open(&p, text, &err);

        timed_pattern_close(&p);
        return r;
}

TEST(where_lines_cannot_wait_repeats_add_64_parts)
{
        static const struct {
                const char *text;
                int r;
        } rows[] = {
                { "step +([0-9]{1,9})/([0-9]{1,9})", 0 },
                { "x{64}", 0 },
                { "(x{8}){8}", 0 },
                { "x{99}", -EDOM },
                { "((x{1,8}){8}){8}", -EDOM },
                { ".*a.{400}c([0-9]+)", -EDOM },
                { "x{2000}", -EDOM },
                { "(a)\\1", -EDOM },
                { "a(", -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (open_timed(rows[i].text) != rows[i].r)
                        fail_msg("%s", rows[i].text);
}

TEST(what_may_take_for_ever_is_refused)
{
        static const char *const texts[] = {
                "(a*)\\1b",
                "(a*)(a*)(a*)(a*)\\1\\2\\3\\4b",
                "([0-9]+) [x]\\1",
                "[[:digit:]]\\1",
                "x{1,255}{1,255}",
                "x{1}{300}{300}",
                "x{300}*{300}",
                "(x{1,255}){1,255}",
                "((x{1,100}y){1,100}|z)",
                "(a{500}|b{500})c",
                "x{32767}",
                "x{99999999999999999999}",
                "(((((((((((x{2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2})",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (compile(texts[i]) != -EDOM)
                        fail_msg("%s", texts[i]);
}

TEST(what_is_no_expression_is_told)
{
        static const char *const texts[] = {
                "a(", "[a", "[[:alpha:", "[[:none:]]", "a\\", "x{2,1}"
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (compile(texts[i]) != -EINVAL)
                        fail_msg("%s", texts[i]);
}
