/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/strv.h"
#include "head/model/outcome.h"
#include "head/model/plan.h"
#include "lib/unit.h"
#include "wire/msg.h"

/* Wait statuses as the kernel makes them. */
#define EXITED(code)   ((code) << 8)
#define SIGNALED(sign) (sign)

static struct outcome o = OUTCOME_INIT;

static int tear_down(void **state UNUSED)
{
        outcome_finish(&o);
        return 0;
}

static bool ends_at(int rank, int status, int64_t ms)
{
        struct cause c = {
                .rank = rank, .node = rank / 4, .at_ns = ms * 1000000, .error_ns = 300000
        };

        return outcome_exited(&o, &c, status, false, false, "");
}

static bool ends(int rank, int status)
{
        return ends_at(rank, status, 100);
}

static bool stopped(int rank, int signo, bool killed)
{
        return outcome_exited(&o, &(struct cause){ .rank = rank }, SIGNALED(signo), true, killed,
                              NULL);
}

static const char *name_of(int rank)
{
        static char name[PLAN_RANK_NAME_MAX];

        return plan_rank_name(NULL, rank, name);
}

TEST_WITH(NULL, tear_down, nothing_that_exits_0_is_a_failure)
{
        assert_false(ends(0, EXITED(0)));
        assert_false(outcome_failed(&o));
        assert_int_equal(outcome_exit_code(&o), 0);
}

TEST_WITH(NULL, tear_down, the_end_of_a_rank_that_starts_again_is_forgotten)
{
        ends(0, EXITED(0));
        ends(1, EXITED(0));
        outcome_add_report(&o, 1, "data", "shard 12 is broken", NULL);
        outcome_add_report(&o, 2, "data", "shard 13 is broken", NULL);
        outcome_forget(&o, 1, true);
        outcome_forget(&o, 2, false);
        assert_int_equal(o.exited, 1);
        assert_null(outcome_find_left(&o, 1));
        assert_non_null(outcome_find_left(&o, 0));
        assert_null(outcome_find_report(&o, 1));
        assert_null(outcome_find_report(&o, 2));
        assert_true(ends(1, EXITED(4)));
        assert_int_equal(outcome_exit_code(&o), 4);
}

TEST_WITH(NULL, tear_down, the_first_failing_rank_gives_the_code)
{
        char text[200];

        assert_true(ends(5, EXITED(7)));
        assert_false(ends(1, EXITED(9)));
        assert_int_equal(outcome_exit_code(&o), 7);
        assert_int_equal(o.n_seen, 2);
        outcome_sentence(&o.cause, name_of(o.cause.rank), "gpu002", text, sizeof(text));
        assert_string_equal(text, "rank 5 on gpu002 exited with code 7");
        assert_true(outcome_is_workers(&o));
}

TEST_WITH(NULL, tear_down, a_fatal_signal_beats_an_earlier_exit_code)
{
        assert_true(ends(1, EXITED(1)));
        assert_true(ends(2, SIGNALED(SIGSEGV)));
        assert_int_equal(o.cause.rank, 2);
        assert_int_equal(outcome_exit_code(&o), 139);
}

TEST_WITH(NULL, tear_down, after_the_decision_nothing_is_a_failure)
{
        struct cause node = { .kind = CAUSE_NODE, .rank = -1, .node = 1 };

        ends(0, EXITED(0));
        outcome_decide(&o);
        assert_false(ends(1, EXITED(7)));
        assert_false(ends(2, SIGNALED(SIGSEGV)));
        assert_false(stopped(3, SIGKILL, true));
        assert_false(ends(4, EXITED(0)));
        assert_false(outcome_happened(&o, &node));
        assert_int_equal(outcome_exit_code(&o), 0);
        assert_int_equal(outcome_count(&o), 0);
        assert_int_equal(o.failed, 0);
        assert_int_equal(o.stopped, 3);
        assert_int_equal(o.killed, 1);
}

TEST_WITH(NULL, tear_down, a_failure_before_the_decision_stays)
{
        assert_true(ends(1, EXITED(7)));
        outcome_decide(&o);
        assert_false(ends(2, SIGNALED(SIGSEGV)));
        assert_int_equal(outcome_exit_code(&o), 7);
        assert_int_equal(o.cause.rank, 1);
}

TEST_WITH(NULL, tear_down, stopped_ranks_are_never_the_cause)
{
        assert_true(ends(1, EXITED(3)));
        assert_false(stopped(2, SIGTERM, false));
        assert_false(stopped(3, SIGKILL, true));
        assert_int_equal(outcome_exit_code(&o), 3);
        assert_int_equal(o.stopped, 2);
        assert_int_equal(o.killed, 1);
        assert_int_equal(o.n_seen, 1);
}

TEST_WITH(NULL, tear_down, a_lost_node_beats_its_ranks)
{
        struct cause c = { .kind = CAUSE_NODE, .rank = -1, .node = 1, .text = "connection reset" };

        assert_true(ends(1, EXITED(1)));
        assert_true(outcome_happened(&o, &c));
        assert_int_equal(outcome_exit_code(&o), 125);
        assert_false(outcome_is_workers(&o));
}

/* It closes its connections before it can be reaped. */
TEST_WITH(NULL, tear_down, a_rank_that_left_mpi_explains_aborts_without_words)
{
        struct cause abort = { .kind = CAUSE_ABORT, .rank = 5, .code = 14, .at_ns = 92000000 };
        struct cause left = { .kind = CAUSE_UNFINALIZED, .rank = 7, .at_ns = 100000000 };

        assert_true(outcome_happened(&o, &abort));
        assert_true(outcome_exited(&o, &left, EXITED(0), false, false, ""));
        assert_int_equal(o.cause.rank, 7);
        assert_int_equal(outcome_exit_code(&o), 1);
        outcome_finish(&o);
        snprintf(abort.text, sizeof(abort.text), "MPI_Abort() with code 14: no input");
        assert_true(outcome_happened(&o, &abort));
        assert_false(outcome_exited(&o, &left, EXITED(0), false, false, ""));
        assert_int_equal(o.cause.rank, 5);
}

TEST_WITH(NULL, tear_down, an_order_stays_the_cause)
{
        struct cause c = { .kind = CAUSE_ORDER, .rank = -1, .node = -1, .signal = SIGINT };

        assert_true(outcome_happened(&o, &c));
        assert_false(ends(2, SIGNALED(SIGSEGV)));
        assert_int_equal(outcome_exit_code(&o), 130);
}

TEST_WITH(NULL, tear_down, an_order_after_a_failure_is_not_the_cause)
{
        struct cause c = { .kind = CAUSE_ORDER, .rank = -1, .node = -1, .signal = SIGINT };

        assert_true(ends(2, EXITED(4)));
        assert_false(outcome_happened(&o, &c));
        assert_int_equal(outcome_exit_code(&o), 4);
}

TEST(every_kind_of_cause_has_its_exit_code)
{
        static const struct {
                struct cause c;
                int code;
        } rows[] = {
                { { .kind = CAUSE_TIMEOUT }, 124 },
                { { .kind = CAUSE_WORLDS }, 78 },
                { { .kind = CAUSE_STDOUT, .error = EPIPE }, 141 },
                { { .kind = CAUSE_STDOUT, .error = ENOSPC }, 73 },
                { { .kind = CAUSE_NODE }, 125 },
                { { .kind = CAUSE_NETWORK }, 125 },
                { { .kind = CAUSE_ORDER, .signal = SIGTERM }, 143 },
                { { .kind = CAUSE_ABORT, .code = 9 }, 9 },
                { { .kind = CAUSE_ABORT, .code = 0 }, 1 },
                { { .kind = CAUSE_ABORT, .code = 256 }, 1 },
                { { .kind = CAUSE_ABORT, .code = -3 }, 1 },
                { { .kind = CAUSE_EXIT, .code = 255 }, 255 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ENOENT }, 127 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ENOTDIR }, 127 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ELIBACC }, 127 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = EACCES }, 126 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_EXEC, .error = ENOEXEC }, 126 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_CWD, .error = ENOENT }, 69 },
                { { .kind = CAUSE_REFUSED, .why = REFUSED_FORK, .error = EAGAIN }, 125 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_true(outcome_happened(&o, &rows[i].c));
                assert_int_equal(outcome_exit_code(&o), rows[i].code);
                outcome_finish(&o);
        }
}

TEST_WITH(NULL, tear_down, a_report_of_a_rank_explains_its_end)
{
        outcome_add_report(&o, 3, "data", "shard 12 is broken", NULL);
        outcome_add_report(&o, 3, "data", "something else", NULL);
        assert_false(outcome_failed(&o));
        assert_true(ends(3, EXITED(1)));
        assert_string_equal(outcome_find_report(&o, 3)->said, "data: shard 12 is broken");
        assert_null(outcome_find_report(&o, 4));
}

TEST_WITH(NULL, tear_down, of_like_failures_the_earlier_one_counts_whenever_it_came)
{
        assert_true(ends_at(1, EXITED(1), 1005));
        assert_true(ends_at(9, EXITED(2), 1000));
        assert_false(ends_at(5, EXITED(3), 1007));
        assert_int_equal(o.cause.rank, 9);
        assert_int_equal(outcome_next(&o)->rank, 1);
}

TEST_WITH(NULL, tear_down, failures_far_apart_are_not_weighed)
{
        assert_true(ends_at(1, EXITED(1), 1000));
        assert_false(ends_at(2, SIGNALED(SIGSEGV), 60000));
        assert_int_equal(o.cause.rank, 1);
}

TEST_WITH(NULL, tear_down, clocks_of_two_nodes_may_be_too_wrong_to_tell)
{
        ends_at(1, EXITED(1), 1000);
        ends_at(9, EXITED(2), 1000);
        ends_at(13, EXITED(2), 1002);
        assert_true(outcome_ambiguous(&o.seen[0], &o.seen[1]));
        assert_false(outcome_ambiguous(&o.seen[0], &o.seen[2]));
}

TEST_WITH(NULL, tear_down, a_silent_node_is_the_cause_of_earlier_failures)
{
        struct cause lost = { .kind = CAUSE_NODE, .rank = -1, .node = 1, .at_ns = 900 * 1000000 };

        o.pulse_ns = 250 * 1000000;
        assert_true(ends_at(1, EXITED(1), 1000)); /* an immediate echo */
        assert_true(outcome_happened(&o, &lost));
        assert_int_equal(o.cause.kind, CAUSE_NODE);
        outcome_finish(&o);

        o.pulse_ns = 250 * 1000000;
        assert_true(ends_at(1, EXITED(1), 300)); /* failed while the node was still there */
        assert_false(outcome_happened(&o, &lost));
        assert_int_equal(o.cause.rank, 1);
}

TEST_WITH(NULL, tear_down, a_rank_that_failed_before_its_node_was_lost_is_the_cause)
{
        struct cause lost = { .kind = CAUSE_NODE, .rank = -1, .at_ns = 1050 * 1000000 };

        o.pulse_ns = 250 * 1000000;
        assert_true(ends_at(1, EXITED(7), 1000));
        lost.node = o.cause.node;
        assert_false(outcome_happened(&o, &lost));
        assert_int_equal(outcome_exit_code(&o), 7);
        lost.node++;
        assert_true(outcome_happened(&o, &lost)); /* another's may have been the reason */
}

TEST_WITH(NULL, tear_down, the_end_of_a_rank_comes_before_the_loss_of_its_node)
{
        struct cause lost = { .kind = CAUSE_NODE, .rank = -1, .node = 1, .at_ns = 999 * 1000000 };

        o.pulse_ns = 250 * 1000000;
        assert_true(ends_at(5, EXITED(7), 1000)); /* by an inexact clock */
        assert_false(outcome_happened(&o, &lost));
        assert_int_equal(outcome_exit_code(&o), 7);
}

static char *words(void *ctx, int rank, struct burst *ret)
{
        const char *const *by_rank = ctx;

        *ret = (struct burst){ 0 };
        return xstrdup(by_rank[rank]);
}

TEST_WITH(NULL, tear_down, a_rank_that_only_lost_a_peer_is_not_the_cause)
{
        const char *said[] = { "gloo: Connection reset by peer [10.0.0.2]:1234", "out of data",
                               "ncclRemoteError: A call failed possibly due to a network error" };

        assert_true(ends_at(0, EXITED(1), 1000));
        assert_false(ends_at(1, EXITED(7), 1001));
        assert_false(ends_at(2, EXITED(1), 1002));
        outcome_finalize(&o, NULL, words, said);
        assert_int_equal(o.cause.rank, 1);
        assert_int_equal(outcome_exit_code(&o), 7);
        assert_null(outcome_next(&o));
        assert_true(o.seen[0].echo && o.seen[2].echo && !o.seen[1].echo);
}

/* 80,000 ranks may fail on their own before our order arrives. */
TEST_WITH(NULL, tear_down, a_late_cause_of_very_many_failures_stays_the_cause)
{
        static const char *said[5000];

        for (int rank = 1; rank < 5000; rank++) {
                said[rank] = "";
                ends_at(rank, EXITED(1), 1001);
        }
        said[0] = "";
        assert_true(ends_at(0, SIGNALED(SIGSEGV), 1002));
        assert_int_equal(o.n_seen + o.unseen, 5000);
        outcome_finalize(&o, NULL, words, said);
        assert_int_equal(o.cause.rank, 0);
        assert_int_equal(outcome_exit_code(&o), 139);
}

TEST_WITH(NULL, tear_down, a_rank_that_explains_itself_beats_one_that_does_not)
{
        outcome_add_report(&o, 2, "python", "ValueError: no such shard", "Traceback ...");
        assert_true(ends_at(0, EXITED(1), 1000));
        assert_true(ends_at(2, EXITED(1), 1001));
        assert_int_equal(o.cause.rank, 2);
}

static void expect_quote(const char *words, int code, enum quote quote, const char *text)
{
        struct cause c = { .kind = CAUSE_EXIT, .rank = 3, .code = code };

        outcome_quote(&o, &c, words);
        assert_string_equal(c.text, text);
        assert_int_equal(c.quote, quote);
        outcome_finish(&o);
}

#define TRACEBACK                                                                                  \
        "Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n"           \
        "    load()\n    ~~~~^^\n"

TEST(a_traceback_ends_with_its_exception)
{
        expect_quote(TRACEBACK "ValueError: shard 12 is empty\n", 1, QUOTE_EXCEPTION,
                     "ValueError: shard 12 is empty");
        expect_quote(TRACEBACK "AssertionError", 1, QUOTE_EXCEPTION, "AssertionError");
        expect_quote(TRACEBACK "KeyError: 'a'\n\nDuring handling of the above exception, another "
                               "exception occurred:\n\n" TRACEBACK "torch.cuda.OutOfMemoryError: "
                               "CUDA out of memory.\n",
                     1, QUOTE_EXCEPTION, "torch.cuda.OutOfMemoryError: CUDA out of memory.");
        expect_quote("  File \"t.py\", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n",
                     1, QUOTE_EXCEPTION, "SyntaxError: invalid syntax");
        expect_quote("[rank3]: " TRACEBACK "[rank3]: RuntimeError: of PyTorch\n", 1,
                     QUOTE_EXCEPTION, "RuntimeError: of PyTorch");
        /* Lines behind: more of the text, or of others at the exit. */
        expect_quote(TRACEBACK
                     "RuntimeError: sizes\nException raised from here\nwarning: at exit\n",
                     1, QUOTE_EXCEPTION, "RuntimeError: sizes");
}

TEST(an_exception_that_was_survived_is_not_the_reason)
{
        expect_quote(TRACEBACK "OSError: tried again\nepoch 1\nno more data\n", 3, QUOTE_LINE,
                     "no more data");
        expect_quote(TRACEBACK "OSError: gave up\n", 3, QUOTE_EXCEPTION, "OSError: gave up");
}

TEST(else_the_last_line_tells)
{
        expect_quote("one\ntwo \n\n  \n", 7, QUOTE_LINE, "two");
        expect_quote(" 10%\r 20%\r\n", 7, QUOTE_LINE, "20%");
        expect_quote("\033[1;31mred\033[0m alert\n", 7, QUOTE_LINE, "red alert");
        expect_quote("\n", 7, QUOTE_NONE, "");
        expect_quote("", 7, QUOTE_NONE, "");
}

TEST_WITH(NULL, tear_down, the_sentence_says_why)
{
        struct cause c = { .kind = CAUSE_EXIT, .rank = 3, .code = 1 };
        char text[640], longer[400];

        outcome_quote(&o, &c, TRACEBACK "ValueError: shard 12 is empty\n");
        outcome_sentence(&c, name_of(c.rank), "node004", text, sizeof(text));
        assert_string_equal(text, "rank 3 on node004: ValueError: shard 12 is empty");
        outcome_quote(&o, &c, "no shard 12\n");
        outcome_sentence(&c, name_of(c.rank), "node004", text, sizeof(text));
        assert_string_equal(text, "rank 3 on node004 exited with code 1: no shard 12");
        outcome_add_report(&o, 3, "python", "ValueError: no shard\nsecond line", NULL);
        outcome_quote(&o, &c, "other words\n");
        outcome_sentence(&c, name_of(c.rank), "node004", text, sizeof(text));
        assert_string_equal(text, "rank 3 on node004: ValueError: no shard");

        c = (struct cause){ .kind = CAUSE_SIGNAL, .rank = 4, .signal = SIGSEGV };
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "rank 4 on n was killed by SIGSEGV (Segmentation fault)");
        outcome_quote(&o, &c, "assertion failed\n");
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "rank 4 on n was killed by SIGSEGV (Segmentation fault): "
                                  "assertion failed");
        /* What Python says of the signal is not said again. */
        outcome_quote(&o, &c,
                      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x0 (most "
                      "recent call first):\n  File \"/t/s.py\", line 3 in crash\n");
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "rank 4 on n was killed by SIGSEGV (Segmentation fault): "
                                  "File \"/t/s.py\", line 3 in crash");
        c.signal = SIGKILL; /* unknown to the rank */
        outcome_quote(&o, &c, "epoch 1\n");
        snprintf(c.oom.file, sizeof(c.oom.file), "/sys/fs/cgroup");
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(
                text, "rank 4 on n was killed by SIGKILL (the kernel's out-of-memory killer)");

        memset(longer, 'x', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        c = (struct cause){ .kind = CAUSE_EXIT, .rank = 5, .code = 1 };
        outcome_quote(&o, &c, longer);
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_int_equal(strlen(text), strlen("rank 5 on n exited with code 1: ") + 120);
        assert_string_equal(text + strlen(text) - 4, "x...");
}

static void expect_brief(enum cause_kind kind, const char *words, const char *want)
{
        struct cause c = { .kind = kind, .rank = -1, .node = -1 };
        char sentence[640], text[320];

        snprintf(c.text, sizeof(c.text), "%s", words);
        outcome_sentence(&c, name_of(c.rank), "n", sentence, sizeof(sentence));
        outcome_brief(&c, name_of(c.rank), "n", sentence, text, sizeof(text));
        assert_string_equal(text, want);
}

TEST(few_words_tell_less_than_the_sentence)
{
        expect_brief(CAUSE_TIMEOUT, "time limit of 3s reached (--timeout)", "--timeout");
        expect_brief(CAUSE_TIMEOUT,
                     "rank 2 on n sleeps in f(); 3 ranks wait; time limit of 3s reached "
                     "(--timeout)",
                     "rank 2 on n sleeps in f()");
        expect_brief(CAUSE_HANG, "the ranks hang (--on-hang stop)", "--on-hang stop");
        expect_brief(CAUSE_HANG, "rank 2 on n sleeps in f(); the ranks hang (--on-hang stop)",
                     "--on-hang stop");
        expect_brief(CAUSE_JOIN, "rank 3 on n did not join within 2s", "--start-timeout");
        expect_brief(CAUSE_STDOUT, "cannot write to standard output: No space left on device",
                     "cannot write to standard output");
}

TEST(texts_of_ranks_are_escaped_in_the_sentence)
{
        struct cause c = { .kind = CAUSE_ABORT, .rank = 0, .code = 3 };
        char text[640];

        snprintf(c.text, sizeof(c.text),
                 "\033]0;OWNED\a\nhnlaunch: finished\r\xe2\x80\xae\xc2\x9b%s", "2J");
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "rank 0 on n aborted the job: \\x1b]0;OWNED\\x07\\x0ahnlaunch: "
                                  "finished\\x0d<U+202E><U+009B>2J");
        c.kind = CAUSE_REFUSED;
        snprintf(c.text, sizeof(c.text), "cannot\n");
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "n: cannot\\x0a");
        c.kind = CAUSE_NODE;
        outcome_sentence(&c, name_of(c.rank), "n", text, sizeof(text));
        assert_string_equal(text, "lost n: cannot\\x0a");
}

/* What a rank has said, when, and how it has ended. */
struct told {
        const char *said;
        int64_t told_ms, ended_ms; /* 0 = it has not ended */
        int status;
        bool stopped;
        int64_t began_ms; /* 0 = told_ms */
};

static struct burst burst_of(const struct told *t)
{
        int64_t began_ms = t->began_ms ? t->began_ms : t->told_ms;

        return (struct burst){ began_ms * 1000000, t->told_ms * 1000000 };
}

static char *told_words(void *ctx, int rank, struct burst *ret)
{
        const struct told *t = ctx;

        *ret = burst_of(&t[rank]);
        return xstrdup(t[rank].said);
}

/* Lets the ranks end in the order of their times. */
static void end_ranks(const struct told *t, int n)
{
        for (int64_t ms = 1; ms < 200000; ms++)
                for (int rank = 0; rank < n; rank++) {
                        struct cause c = { .rank = rank, .node = rank / 4 };

                        if (t[rank].ended_ms != ms)
                                continue;
                        c.at_ns = ms * 1000000;
                        c.told = burst_of(&t[rank]);
                        outcome_exited(&o, &c, t[rank].status, t[rank].stopped, false,
                                       t[rank].said);
                }
}

#define VALUE TRACEBACK "ValueError: no label\n"
#define LOST  TRACEBACK "RuntimeError: [pair.cc:534] Connection closed by peer [::1]:7\n"

static void expect_cause(const struct told *t, int n, int64_t stopped_ms, int rank,
                         enum cause_kind kind, int code)
{
        end_ranks(t, n);
        o.stopped_ns = stopped_ms * 1000000;
        outcome_finalize(&o, NULL, told_words, (void *)t);
        assert_int_equal(o.cause.rank, rank);
        assert_int_equal(o.cause.kind, kind);
        assert_int_equal(outcome_exit_code(&o), code);
        assert_false(o.cause.echo);
        outcome_finish(&o);
}

TEST(a_reason_counts_however_late_its_rank_ends)
{
        const struct told late[] = { { LOST, 1500, 1550, EXITED(9), false },
                                     { VALUE, 1000, 4000, EXITED(42), false } };
        const struct told stopped[] = { { LOST, 1500, 1550, EXITED(9), false },
                                        { VALUE, 1000, 1700, SIGNALED(SIGTERM), true } };
        const struct told shell[] = { { LOST, 1500, 1550, SIGNALED(SIGABRT), false },
                                      { VALUE, 1000, 1700, EXITED(143), true } };
        const struct told own[] = { { LOST, 1500, 1550, EXITED(9), false },
                                    { VALUE, 1900, 1950, EXITED(7), true } };
        const struct told well[] = { { LOST, 1500, 1550, EXITED(9), false },
                                     { VALUE, 1000, 1100, EXITED(0), false } };

        expect_cause(late, 2, 0, 1, CAUSE_EXIT, 42);
        expect_cause(stopped, 2, 1600, 1, CAUSE_LATE, 9);
        expect_cause(shell, 2, 1600, 1, CAUSE_LATE, 134);
        expect_cause(own, 2, 1600, 1, CAUSE_EXIT, 7);
        expect_cause(well, 2, 0, 1, CAUSE_LATE, 9);
}

TEST(of_ranks_that_lost_a_peer_the_first_to_say_so_counts)
{
        const struct told order[] = { { LOST, 1500, 1550, EXITED(9), false },
                                      { LOST, 1400, 1600, EXITED(7), false } };
        const struct told slow[] = { { LOST, 1500, 1550, EXITED(9), false },
                                     { LOST, 1520, 1600, EXITED(7), false, 1300 } };
        const struct told chatty[] = { { LOST, 9500, 9550, EXITED(9), false },
                                       { LOST, 9520, 9600, EXITED(7), false, 1300 } };

        expect_cause(order, 2, 0, 1, CAUSE_EXIT, 7);
        expect_cause(slow, 2, 0, 1, CAUSE_EXIT, 7);
        expect_cause(chatty, 2, 0, 0, CAUSE_EXIT, 9);
}

TEST(a_burst_ends_with_a_pause)
{
        struct burst b = { 0 };

        burst_add(&b, 10000 * 1000000LL);
        burst_add(&b, 10400 * 1000000LL);
        assert_int_equal(burst_words_ns(&b), 10000 * 1000000LL);
        burst_add(&b, 11000 * 1000000LL);
        assert_int_equal(burst_words_ns(&b), 11000 * 1000000LL);
        for (int64_t ms = 11100; ms <= 14000; ms += 100)
                burst_add(&b, ms * 1000000);
        assert_int_equal(burst_words_ns(&b), 14000 * 1000000LL);
}

TEST(what_ranks_say_of_the_order_is_no_reason)
{
        const struct told killed[] = { { LOST, 1500, 1550, EXITED(9), false },
                                       { VALUE, 1700, 1800, SIGNALED(SIGTERM), true } };
        const struct told caught[] = { { LOST, 1500, 1550, EXITED(9), false },
                                       { TRACEBACK "RuntimeError: got SIGTERM\n", 1700, 1800,
                                         EXITED(1), true } };
        const struct told handler[] = { { LOST, 1500, 1550, EXITED(9), false },
                                        { TRACEBACK "  File \"t.py\", line 3, in handler\n"
                                                    "    raise End()\nEnd: now\n",
                                          1700, 1800, EXITED(1), true } };

        expect_cause(killed, 2, 1600, 0, CAUSE_EXIT, 9);
        expect_cause(caught, 2, 1600, 0, CAUSE_EXIT, 9);
        expect_cause(handler, 2, 1600, 0, CAUSE_EXIT, 9);
}

TEST(a_rank_with_a_reason_beats_one_that_leaves_in_silence)
{
        const struct told silent[] = { { "", 0, 1550, EXITED(3), false },
                                       { VALUE, 1000, 1700, SIGNALED(SIGTERM), true } };
        const struct told late[] = { { "", 0, 1550, EXITED(3), false },
                                     { VALUE, 1555, 4000, EXITED(1), false } };
        const struct told line[] = { { "", 0, 1550, EXITED(3), false },
                                     { "fatal: bad mesh\n", 1000, 1700, SIGNALED(SIGTERM), true } };
        const struct told slow_line[] = { { "", 0, 1550, EXITED(3), false },
                                          { "fatal: bad mesh\n", 1500, 4000, EXITED(7), false } };
        const struct told old[] = { { "", 0, 101550, EXITED(3), false },
                                    { VALUE, 1000, 101700, SIGNALED(SIGTERM), true } };
        const struct told aborts[] = { { "", 0, 1550, SIGNALED(SIGABRT), false },
                                       { VALUE, 1000, 1050, EXITED(1), false } };
        const struct told words[] = { { "bad mesh\n", 1500, 1550, EXITED(3), false },
                                      { VALUE, 1000, 1700, SIGNALED(SIGTERM), true } };

        expect_cause(silent, 2, 1600, 1, CAUSE_LATE, 3);
        expect_cause(late, 2, 0, 1, CAUSE_EXIT, 1);
        expect_cause(line, 2, 1600, 1, CAUSE_LATE, 3);
        expect_cause(slow_line, 2, 0, 1, CAUSE_EXIT, 7);
        expect_cause(old, 2, 101600, 0, CAUSE_EXIT, 3); /* an exception that it had survived */
        expect_cause(aborts, 2, 0, 1, CAUSE_EXIT, 1);
        expect_cause(words, 2, 1600, 0, CAUSE_EXIT, 3);
}

TEST(a_message_counts_if_all_others_follow)
{
        const struct told error[] = { { LOST, 1500, 1550, EXITED(9), false },
                                      { "fatal: bad mesh\n", 1000, 1700, SIGNALED(SIGTERM), true },
                                      { "step 12 of 20\n", 1400, 1700, SIGNALED(SIGTERM), true } };
        const struct told long_ago[] = { { LOST, 21500, 21550, EXITED(9), false },
                                         { "error: tried again\n", 1000, 21700, SIGNALED(SIGTERM),
                                           true } };

        expect_cause(error, 3, 1600, 1, CAUSE_LATE, 9);
        expect_cause(long_ago, 2, 21600, 0, CAUSE_EXIT, 9);
}

TEST(a_lost_service_is_the_reason_if_nobody_tells_another)
{
        const struct told t[] = { { LOST, 1500, 1550, SIGNALED(SIGABRT), false },
                                  { TRACEBACK "ConnectionRefusedError: [Errno 111] Connection "
                                              "refused\n",
                                    1000, 1050, EXITED(4), false },
                                  { "", 0, 1700, SIGNALED(SIGTERM), true } };
        const struct told slow[] = { { LOST, 1010, 1020, EXITED(9), false },
                                     { LOST, 1000, 1050, EXITED(4), false } };

        expect_cause(t, 3, 1600, 1, CAUSE_EXIT, 4);
        expect_cause(slow, 2, 0, 1, CAUSE_EXIT, 4);
}

TEST_WITH(NULL, tear_down, the_first_exception_of_a_chain_is_the_reason)
{
        const struct told t[] = { { LOST, 1000, 1010, EXITED(1), false },
                                  { TRACEBACK
                                    "ValueError: no label\n\nDuring handling of the "
                                    "above exception, another exception occurred:\n\n" LOST,
                                    1000, 1050, EXITED(1), false } };

        end_ranks(t, 2);
        outcome_finalize(&o, NULL, told_words, (void *)t);
        assert_int_equal(o.cause.rank, 1);
        assert_string_equal(o.cause.text, "ValueError: no label");
}

TEST_WITH(NULL, tear_down, the_stop_waits_for_a_rank_that_has_told_a_reason)
{
        const struct told t[] = { { "", 0, 1550, EXITED(3), false }, { VALUE, 1000, 0, 0, false } };
        const struct told alone[] = { { VALUE, 1500, 1550, EXITED(1), false },
                                      { VALUE, 1000, 0, 0, false } };
        const struct told echo[] = { { LOST, 1500, 1550, EXITED(3), false },
                                     { "", 0, 0, 0, false } };

        end_ranks(t, 2);
        assert_true(outcome_may_follow(&o, 2, 1600 * 1000000LL, told_words, (void *)t));
        assert_false(outcome_may_follow(&o, 2, 16000 * 1000000LL, told_words, (void *)t));
        outcome_finish(&o);
        end_ranks(alone, 2);
        assert_false(outcome_may_follow(&o, 2, 1600 * 1000000LL, told_words, (void *)alone));
        outcome_finish(&o);
        end_ranks(echo, 2);
        assert_true(outcome_may_follow(&o, 2, 1600 * 1000000LL, told_words, (void *)echo));
}

static bool is_same(int rank)
{
        for (size_t i = 0; i < o.n_same; i++)
                if (o.same[i] == rank)
                        return true;
        return false;
}

TEST_WITH(NULL, tear_down, ranks_that_said_the_same_are_found)
{
        const char *said[] = { TRACEBACK "ValueError: empty\n",
                               TRACEBACK "ValueError: empty\n",
                               "other\n",
                               TRACEBACK "ValueError: empty\n",
                               TRACEBACK "ValueError: empty\n",
                               "ValueError: empty\n" };

        assert_true(ends_at(0, EXITED(1), 1000));
        ends_at(1, EXITED(1), 1001);
        ends_at(2, EXITED(1), 1002);
        /* The order arrived just before the end. */
        outcome_exited(&o, &(struct cause){ .rank = 3 }, EXITED(1), true, false, NULL);
        stopped(4, SIGTERM, false);
        stopped(5, SIGTERM, false);
        outcome_finalize(&o, NULL, words, said);
        assert_int_equal(o.cause.rank, 0);
        assert_int_equal(o.n_same, 3);
        assert_true(is_same(1) && is_same(3) && is_same(4));
        assert_int_equal(o.stopped, 1); /* rank 5: the others had failed by themselves */
        assert_int_equal(o.failed, 5);
}

TEST_WITH(NULL, tear_down, what_follows_is_not_counted_with_the_same_reason)
{
        const char *said[] = { LOST, LOST, LOST };

        for (int i = 0; i < 3; i++)
                ends_at(i, EXITED(1), 1000 + i);
        outcome_finalize(&o, NULL, words, said);
        assert_int_equal(o.n_same, 0);
        assert_int_equal(o.failed, 3);
}

TEST_WITH(NULL, tear_down, ranks_that_left_early_with_0_are_kept)
{
        assert_false(ends_at(5, EXITED(0), 1000));
        assert_true(ends_at(0, EXITED(1), 3100));
        assert_int_equal(o.left.n, 1);
        assert_int_equal(o.left.v[0].rank, 5);
        assert_int_equal(o.left.v[0].at_ns, INT64_C(1000) * 1000000);
}

TEST_WITH(NULL, tear_down, very_long_reports_are_cut)
{
        CLEANUP(free_textp) char *text = xcalloc(1 << 20, 1);

        memset(text, 'x', (1 << 20) - 1);
        outcome_add_report(&o, 1, "python", text, text);
        assert_in_range(strlen(outcome_find_report(&o, 1)->said), 1000, 4000);
        assert_in_range(strlen(outcome_find_report(&o, 1)->trace), 1000, 20000);
}
