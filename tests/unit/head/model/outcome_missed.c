/* SPDX-License-Identifier: Apache-2.0 */
/* Causes that are no failures: ranks that the others have missed. */
#include <signal.h>

#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "lib/unit.h"

static const char *name_of(int rank)
{
        static char name[PLAN_RANK_NAME_MAX];

        return plan_rank_name(NULL, rank, name);
}

#define LOST    "RuntimeError: [pair.cc:534] Connection closed by peer [::1]:7\n"
#define IN_VAIN "RuntimeError: Timed out waiting 5ms for recv operation\n"

enum { RANKS = 4 };

/* What each rank has written. */
struct said {
        const char *by_rank[RANKS];
};

static char *words_of(void *ctx, int rank, struct burst *ret)
{
        const struct said *said = ctx;

        *ret = (struct burst){ 0 };
        return xstrdup(said->by_rank[rank] ? said->by_rank[rank] : "");
}

static void end_rank(struct outcome *o, int rank, int code, int64_t ms, const struct said *said)
{
        struct cause c = { .rank = rank, .at_ns = ms * 1000000, .step = rank == 3 ? 5 : 0 };

        outcome_exited(o, &c, code << 8, false, false, said->by_rank[rank]);
}

static void expect_sentence(const struct cause *c, const char *expected)
{
        char text[640];

        outcome_sentence(c, name_of(c->rank), "gpu1", text, sizeof(text));
        assert_string_equal(text, expected);
}

TEST(a_rank_that_others_missed_is_the_cause)
{
        struct said said = { { LOST, LOST } };
        CLEANUP(outcome_finish) struct outcome o = OUTCOME_INIT;

        end_rank(&o, 2, 0, 1100, &said);
        end_rank(&o, 3, 0, 1000, &said);
        end_rank(&o, 1, 4, 1300, &said);
        end_rank(&o, 0, 9, 1200, &said);
        outcome_finalize(&o, NULL, words_of, &said);
        assert_int_equal(o.cause.kind, CAUSE_LEFT);
        assert_int_equal(o.cause.rank, 3);
        assert_int_equal(outcome_exit_code(&o), 9);
        assert_int_equal(outcome_first_failed(&o)->rank, 0);
        assert_int_equal(o.n_same, 0);
        expect_sentence(&o.cause, "rank 3 on gpu1 left at step 5 with exit 0, and others failed "
                                  "without it, the first with: RuntimeError: [pair.cc:534] "
                                  "Connection closed by peer [::1]:7");
}

TEST(only_a_rank_that_had_left_is_missed)
{
        static const struct {
                struct said said;
                int rank, code;
                int64_t left_ms;
                int left, cause;
        } cases[] = {
                { { { LOST } }, 0, 9, 1000, 3, 3 },
                { { { LOST } }, 0, 9, 1300, 3, 3 }, /* its end took a moment */
                { { { LOST } }, 0, 9, 3300, 3, 0 },
                { { { LOST, LOST } }, 0, 9, 1000, 1, 0 }, /* it has lost a peer itself */
                { { { "no more data\n" } }, 0, 9, 1000, 3, 0 },
                { { { LOST } }, 0, 0, 1000, 3, -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct said said = cases[i].said;
                CLEANUP(outcome_finish) struct outcome o = OUTCOME_INIT;

                end_rank(&o, cases[i].left, 0, cases[i].left_ms, &said);
                end_rank(&o, cases[i].rank, cases[i].code, 1200, &said);
                outcome_finalize(&o, NULL, words_of, &said);
                assert_int_equal(o.cause.rank, cases[i].cause);
        }
}

TEST(a_rank_for_which_others_waited_in_vain_is_the_cause)
{
        struct said said = { { IN_VAIN } };
        CLEANUP(outcome_finish) struct outcome o = OUTCOME_INIT;

        end_rank(&o, 0, 4, 1000, &said);
        outcome_blame(&o, 1, 0, "rank 1 on gpu1 sleeps in f (x.py:3); 1 rank waits in g");
        outcome_exited(&o, &(struct cause){ .rank = 1 }, SIGTERM, true, false, NULL);
        outcome_finalize(&o, NULL, words_of, &said);
        assert_int_equal(o.cause.kind, CAUSE_STUCK);
        assert_int_equal(o.cause.rank, 1);
        assert_int_equal(outcome_exit_code(&o), 4);
        assert_int_equal(o.stopped, 1);
        assert_true(outcome_is_workers(&o));
        expect_sentence(&o.cause, "rank 1 on gpu1 sleeps in f (x.py:3); 1 rank waits in g; rank 0 "
                                  "failed: RuntimeError: Timed out waiting 5ms for recv operation");
}

TEST(a_decision_of_the_launcher_names_whom_the_others_waited_for)
{
        struct cause c = { .kind = CAUSE_TIMEOUT, .rank = -1, .node = -1, .text = "time is over" };
        struct said said = { { NULL } };
        struct outcome o = OUTCOME_INIT;

        outcome_blame(&o, 2, 0, "nothing has failed");
        assert_false(outcome_failed(&o));
        outcome_happened(&o, &c);
        outcome_blame(&o, 2, 0, "rank 2 on gpu1 sleeps");
        end_rank(&o, 0, 1, 1000, &said);
        outcome_blame(&o, 1, 0, "a rank has failed since");
        outcome_finalize(&o, NULL, words_of, &said);
        assert_int_equal(o.cause.rank, 2);
        assert_int_equal(outcome_exit_code(&o), 124);
        expect_sentence(&o.cause, "rank 2 on gpu1 sleeps; time is over");
        outcome_finish(&o);
        c = (struct cause){ .kind = CAUSE_ORDER, .rank = -1, .node = -1, .signal = SIGTERM };
        cause_blame(&c, 2, 0, "rank 2 on gpu1 sleeps");
        expect_sentence(&c, "rank 2 on gpu1 sleeps; SIGTERM");
}
