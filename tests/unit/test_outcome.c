/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "head/outcome.h"
#include "wire/msg.h"

/* Wait statuses as the kernel makes them. */
#define EXITED(code)   ((code) << 8)
#define SIGNALED(sign) (sign)

static bool ends(struct outcome *o, int rank, int status)
{
        return outcome_exited(o, rank, rank / 4, 100, status, false, false, 10);
}

static void test_nothing_that_exits_0_is_a_failure(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;

        assert_false(ends(&o, 0, EXITED(0)));
        assert_false(outcome_failed(&o));
        assert_int_equal(outcome_exit_code(&o), 0);
}

static void test_the_first_failing_rank_gives_the_code(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;
        char text[200];

        assert_true(ends(&o, 5, EXITED(7)));
        assert_false(ends(&o, 1, EXITED(9)));
        assert_int_equal(outcome_exit_code(&o), 7);
        assert_int_equal(o.consequences, 1);
        outcome_sentence(&o, "gpu002", text, sizeof(text));
        assert_string_equal(text, "rank 5 on gpu002 exited with code 7");
        assert_true(outcome_is_workers(&o));
}

static void test_a_fatal_signal_beats_an_earlier_exit_code(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;

        assert_true(ends(&o, 1, EXITED(1)));
        assert_true(ends(&o, 2, SIGNALED(SIGSEGV)));
        assert_int_equal(o.cause.rank, 2);
        assert_int_equal(outcome_exit_code(&o), 139);
}

static void test_what_we_stopped_is_never_the_cause(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;

        assert_true(ends(&o, 1, EXITED(3)));
        assert_false(outcome_exited(&o, 2, 0, 1, SIGNALED(SIGTERM), true, false, 20));
        assert_false(outcome_exited(&o, 3, 0, 1, SIGNALED(SIGKILL), true, true, 20));
        assert_int_equal(outcome_exit_code(&o), 3);
        assert_int_equal(o.stopped, 2);
        assert_int_equal(o.killed, 1);
        assert_int_equal(o.consequences, 0);
}

static void test_a_lost_node_beats_its_ranks(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;
        struct cause c = { .kind = CAUSE_NODE, .rank = -1, .node = 1, .text = "connection reset" };

        assert_true(ends(&o, 1, EXITED(1)));
        assert_true(outcome_happened(&o, &c));
        assert_int_equal(outcome_exit_code(&o), 125);
        assert_false(outcome_is_workers(&o));
}

static void test_an_order_stands_whatever_follows(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;
        struct cause c = { .kind = CAUSE_ORDER, .rank = -1, .node = -1, .signal = SIGINT };

        assert_true(outcome_happened(&o, &c));
        assert_false(ends(&o, 2, SIGNALED(SIGSEGV)));
        assert_int_equal(outcome_exit_code(&o), 130);
}

static void test_an_order_after_a_failure_is_not_the_cause(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;
        struct cause c = { .kind = CAUSE_ORDER, .rank = -1, .node = -1, .signal = SIGINT };

        assert_true(ends(&o, 2, EXITED(4)));
        assert_false(outcome_happened(&o, &c));
        assert_int_equal(outcome_exit_code(&o), 4);
}

static void test_every_kind_of_cause_has_its_exit_code(void **state UNUSED)
{
        static const struct {
                struct cause c;
                int code;
        } rows[] = {
                { { .kind = CAUSE_TIMEOUT }, 124 },
                { { .kind = CAUSE_STDOUT, .error = EPIPE }, 141 },
                { { .kind = CAUSE_STDOUT, .error = ENOSPC }, 73 },
                { { .kind = CAUSE_NODE }, 125 },
                { { .kind = CAUSE_ORDER, .signal = SIGTERM }, 143 },
                { { .kind = CAUSE_ABORT, .code = 9 }, 9 },
                { { .kind = CAUSE_ABORT, .code = 0 }, 1 },
                { { .kind = CAUSE_EXIT, .code = 255 }, 255 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ENOENT }, 127 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = EACCES }, 126 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ENOEXEC }, 126 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_CWD, .error = ENOENT }, 69 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_FORK, .error = EAGAIN }, 125 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct outcome o = OUTCOME_INIT;

                assert_true(outcome_happened(&o, &rows[i].c));
                assert_int_equal(outcome_exit_code(&o), rows[i].code);
        }
}

static void test_what_a_rank_said_belongs_to_its_death(void **state UNUSED)
{
        struct outcome o = OUTCOME_INIT;

        outcome_report(&o, 3, "data", "shard 12 is broken");
        assert_false(outcome_failed(&o));
        assert_true(ends(&o, 3, EXITED(1)));
        assert_string_equal(o.cause.text, "data: shard 12 is broken");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_that_exits_0_is_a_failure),
                cmocka_unit_test(test_the_first_failing_rank_gives_the_code),
                cmocka_unit_test(test_a_fatal_signal_beats_an_earlier_exit_code),
                cmocka_unit_test(test_what_we_stopped_is_never_the_cause),
                cmocka_unit_test(test_a_lost_node_beats_its_ranks),
                cmocka_unit_test(test_an_order_stands_whatever_follows),
                cmocka_unit_test(test_an_order_after_a_failure_is_not_the_cause),
                cmocka_unit_test(test_every_kind_of_cause_has_its_exit_code),
                cmocka_unit_test(test_what_a_rank_said_belongs_to_its_death),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
