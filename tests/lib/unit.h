/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test: what each file of tests/unit begins with
 *
 *   TEST(a_name_may_have_253_letters)
 *   {
 *           assert_int_equal(...);
 *   }
 *
 * A TEST needs no list: the main() of unit_main.c runs all tests of the file in their order. Its
 * body has @state of cmocka. TEST_WITH names a function that runs before the test, and one that
 * runs after it; NULL is none. TEST_OF declares, besides, what the first leaves in *state: such as
 * struct world *w. A file with something to do once, before or after all tests, has UNIT_MAIN, or
 * a main() of its own that calls unit_run().
 *
 * The header includes cmocka.h with all that it needs, and what nearly every test includes.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

/* Runs all tests of the file between two functions, which may be NULL; returns what main() does. */
int unit_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all);

#define UNIT_MAIN(set_up_all, tear_down_all)                                                       \
        int main(void)                                                                             \
        {                                                                                          \
                return unit_run(set_up_all, tear_down_all);                                        \
        }

/* Adds a test in front of those of later lines; for TEST alone. */
void unit_add(int line, struct CMUnitTest test);

#define TEST(test) TEST_WITH(NULL, NULL, test)
#define TEST_WITH(set_up, tear_down, test)                                                         \
        static void test_##test(void **state);                                                     \
        UNIT_ADD(set_up, tear_down, test, test_##test)                                             \
        static void test_##test(void **state UNUSED)
#define TEST_OF(set_up, tear_down, object, test)                                                   \
        static void test_##test(object);                                                           \
        static void run_##test(void **state)                                                       \
        {                                                                                          \
                test_##test(*state);                                                               \
        }                                                                                          \
        UNIT_ADD(set_up, tear_down, test, run_##test)                                              \
        static void test_##test(object)
#define UNIT_ADD(set_up, tear_down, test, function)                                                \
        __attribute__((constructor)) static void add_##test(void)                                  \
        {                                                                                          \
                unit_add(__LINE__, (struct CMUnitTest){ .name = "test_" #test,                     \
                                                        .test_func = (function),                   \
                                                        .setup_func = (set_up),                    \
                                                        .teardown_func = (tear_down) });           \
        }
