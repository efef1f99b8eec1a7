/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/cpu_mask.h"

static void expect_list(const char *text, const char *want)
{
        CLEANUP(free_textp) char *got = NULL;
        struct cpu_mask m;

        assert_int_equal(cpu_mask_parse(&m, text, strlen(text)), want ? 0 : -EINVAL);
        if (!want)
                return;
        got = cpu_mask_format(&m);
        assert_string_equal(got, want);
}

TEST(lists_of_the_kernel_are_read_and_written)
{
        expect_list("", "");
        expect_list("\n", "");
        expect_list("0\n", "0");
        expect_list("0-3,8,10-11\n", "0-3,8,10-11");
        expect_list("3,2,1,1-2", "1-3");
        expect_list("63-64,127,128", "63-64,127-128");
        expect_list("16383", "16383");
        expect_list("0-16383", "0-16383");
}

TEST(what_is_no_list_is_refused)
{
        static const char *const texts[] = {
                ",",   "0,",    "-1",      "3-1",  "0-",    "a",     "0 1",
                "0;1", "16384", "0-16384", "0,,1", "0-3-4", "0\n\n", "99999999999999",
                "0x1"
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                expect_list(texts[i], NULL);
}

TEST(sets_are_counted_and_combined)
{
        struct cpu_mask a, b, c;

        cpu_mask_parse(&a, "0-70", 4);
        cpu_mask_parse(&b, "64-100", 6);
        assert_int_equal(cpu_mask_count(&a), 71);
        assert_int_equal(cpu_mask_next(&a, 71), CPU_NONE);
        assert_int_equal(cpu_mask_next(&b, 0), 64);
        assert_int_equal(cpu_mask_next(&b, 65), 65);
        assert_int_equal(cpu_mask_next(&b, CPU_MASK_BITS), CPU_NONE);
        c = a;
        cpu_mask_and(&c, &b);
        assert_int_equal(cpu_mask_count(&c), 7);
        assert_true(cpu_mask_has(&c, 64) && !cpu_mask_has(&c, 63));
        c = a;
        cpu_mask_or(&c, &b);
        assert_int_equal(cpu_mask_count(&c), 101);
        cpu_mask_without(&c, &b);
        assert_int_equal(cpu_mask_count(&c), 64);
        assert_false(cpu_mask_is_equal(&c, &a));
        cpu_mask_without(&c, &a);
        assert_true(cpu_mask_is_empty(&c));
        cpu_mask_add(&c, CPU_MASK_BITS); /* has no place */
        assert_true(cpu_mask_is_empty(&c));
        assert_false(cpu_mask_has(&a, CPU_MASK_BITS));
}
