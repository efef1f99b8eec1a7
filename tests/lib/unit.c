/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit.h"

#include "base/memory.h"

/* The tests of the file by their lines: constructors run in any order. */
static struct CMUnitTest *tests;
static int *lines;
static size_t n_tests;

void unit_add(int line, struct CMUnitTest test)
{
        size_t at = n_tests;

        tests = xrealloc(tests, n_tests + 1, sizeof(*tests));
        lines = xrealloc(lines, n_tests + 1, sizeof(*lines));
        for (; at && lines[at - 1] > line; at--) {
                tests[at] = tests[at - 1];
                lines[at] = lines[at - 1];
        }
        tests[at] = test;
        lines[at] = line;
        n_tests++;
}

int unit_run(CMFixtureFunction set_up_all, CMFixtureFunction tear_down_all)
{
        /* Nothing is found in the user's cache, or left there: a test of a cache sets its own. */
        setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
        return _cmocka_run_group_tests("tests", tests, n_tests, set_up_all, tear_down_all);
}
