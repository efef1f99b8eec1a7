/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/restart_rule.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "lib/unit.h"

static const struct restart_limits limits = { 93, 3, true };

/* Makes a history from attempts given in turn, and keeps the last decision. */
struct series {
        struct restart_past past[20];
        size_t n;
        struct restart_decision d;
};

static enum restart_verb add(struct series *s, struct evidence e)
{
        struct restart_history h = { s->past, s->n };

        restart_decide(&s->d, &h, &e, &limits);
        s->past[s->n++] = (struct restart_past){ e, s->d.verb };
        return s->d.verb;
}

static struct evidence of(enum evidence_kind kind, const char *host)
{
        struct evidence e = { .kind = kind, .rank = 0 };

        snprintf(e.host, sizeof(e.host), "%s", host);
        return e;
}

static struct evidence fault(int signo, const char *host)
{
        struct evidence e = of(EVIDENCE_FAULT, host);

        e.signal = signo;
        return e;
}

static struct evidence exits(int code, const char *text, const char *host)
{
        struct evidence e = of(EVIDENCE_EXIT, host);

        e.code = code;
        snprintf(e.text, sizeof(e.text), "%s", text);
        return e;
}

static struct evidence won(struct evidence e)
{
        e.progress = true;
        return e;
}

#define IS(call, verb) assert_int_equal(call, RESTART_##verb)
#define SAYS(s, text)                                                                              \
        do {                                                                                       \
                if (!strstr((s).d.reason, text))                                                   \
                        fail_msg("no %s in: %s", text, (s).d.reason);                              \
        } while (0)

TEST(an_order_to_end_stops)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_NONE, "")), STOP);
}

TEST(the_same_failure_twice_without_progress_stops)
{
        struct series text = { 0 }, code = { 0 }, other = { 0 };

        IS(add(&text, exits(1, "ValueError: #", "a")), SAME);
        IS(add(&text, exits(1, "ValueError: #", "b")), STOP); /* on any rank */
        SAYS(text, "the same failure twice");
        IS(add(&code, exits(3, "", "a")), SAME);
        IS(add(&code, exits(3, "", "a")), STOP);
        IS(add(&other, exits(1, "ValueError: #", "a")), SAME);
        IS(add(&other, exits(1, "KeyError: #", "a")), SAME); /* another text, the same code */
}

TEST(a_failure_that_came_before_another_one_is_known)
{
        struct series s = { 0 };

        IS(add(&s, exits(1, "ValueError: #", "a")), SAME);
        IS(add(&s, of(EVIDENCE_LOST, "b")), HOST_OUT);
        IS(add(&s, exits(1, "ValueError: #", "c")), STOP);
}

TEST(the_echo_of_another_failure_is_not_the_programs)
{
        struct series s = { 0 };
        struct evidence e = exits(1, "NCCL error: remote process exited", "a");

        e.echo = true;
        IS(add(&s, e), SAME);
        IS(add(&s, e), SAME);
        SAYS(s, "nothing points to one host");
        IS(add(&s, e), STOP);
        SAYS(s, "3 attempts without progress");
}

TEST(a_program_that_gives_up_is_obeyed)
{
        struct series s = { 0 };
        struct evidence e = exits(93, "", "a");

        e.gave_up = true;
        IS(add(&s, won(e)), STOP);
        SAYS(s, "exited with 93");
}

TEST(a_lost_host_goes)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_LOST, "a")), HOST_OUT);
        IS(add(&s, won(of(EVIDENCE_LOST, "b"))), HOST_OUT);
        SAYS(s, "b or its agent was lost");
}

TEST(hosts_lost_with_their_hold_stay)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_LOST, "")), SAME);
        SAYS(s, "the hold of the nodes has ended");
}

TEST(a_drained_host_goes_and_no_attempt_was_in_vain)
{
        struct series s = { 0 };

        for (int i = 0; i < 8; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%d", i);
                IS(add(&s, of(EVIDENCE_DRAINED, name)), HOST_OUT);
        }
        SAYS(s, "n7 was drained");
        IS(add(&s, exits(1, "", "a")), SAME);
}

TEST(lost_hosts_are_no_attempts_in_vain)
{
        struct series s = { 0 };

        for (int i = 0; i < 8; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%d", i);
                IS(add(&s, of(EVIDENCE_LOST, name)), HOST_OUT);
        }
        IS(add(&s, exits(1, "KeyError", "a")), SAME);
}

TEST(what_belongs_to_the_node_alone_puts_it_out)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_NODE, "a")), HOST_OUT);
        IS(add(&s, of(EVIDENCE_NODE, "b")), HOST_OUT);
        assert_false(s.d.acquits);
        IS(add(&s, of(EVIDENCE_NODE, "c")), STOP);
        assert_true(s.d.acquits);
        SAYS(s, "it is the program's");
        assert_true(restart_acquits(&s.past[0], &s.past[2].evidence));
        s.past[0].evidence.error = ENOSPC; /* it was out for something else */
        assert_false(restart_acquits(&s.past[0], &s.past[2].evidence));
}

TEST(a_program_that_no_node_can_start_stops)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_MISSING, "a")), STOP);
}

TEST(a_fault_puts_a_host_out_for_the_second_time)
{
        static const int signals[] = { SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGABRT };

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                struct series s = { 0 };

                IS(add(&s, fault(signals[i], "a")), SAME);
                SAYS(s, "the first time on a");
                IS(add(&s, fault(signals[i], "a")), HOST_OUT);
                SAYS(s, "a second time on a");
        }
}

TEST(the_same_fault_on_another_host_is_the_programs)
{
        struct series after = { 0 }, at_once = { 0 };

        IS(add(&after, fault(SIGSEGV, "a")), SAME);
        IS(add(&after, fault(SIGSEGV, "a")), HOST_OUT);
        IS(add(&after, fault(SIGSEGV, "b")), STOP);
        assert_true(after.d.acquits);
        assert_false(restart_acquits(&after.past[0], &after.past[2].evidence)); /* not put out */
        assert_true(restart_acquits(&after.past[1], &after.past[2].evidence));
        IS(add(&at_once, fault(SIGSEGV, "a")), SAME);
        IS(add(&at_once, fault(SIGSEGV, "b")), STOP);
}

TEST(a_fault_where_there_is_one_host_only_is_the_programs)
{
        struct series s = { 0 };

        IS(add(&s, fault(SIGSEGV, "")), SAME);
        IS(add(&s, fault(SIGSEGV, "")), STOP);
        SAYS(s, "the same failure twice");
}

TEST(different_signals_do_not_add_up)
{
        struct series s = { 0 };

        IS(add(&s, fault(SIGSEGV, "a")), SAME);
        IS(add(&s, fault(SIGBUS, "a")), SAME);
        IS(add(&s, fault(SIGFPE, "b")), STOP); /* three in vain */
}

TEST(progress_lets_a_fault_be_forgotten)
{
        struct series s = { 0 };

        IS(add(&s, fault(SIGSEGV, "a")), SAME);
        IS(add(&s, won(fault(SIGSEGV, "a"))), SAME);
        IS(add(&s, won(fault(SIGSEGV, "b"))), SAME);
        IS(add(&s, fault(SIGSEGV, "b")), SAME);
        IS(add(&s, fault(SIGSEGV, "b")), HOST_OUT);
}

TEST(progress_protects_no_host_that_faults_again_and_again)
{
        struct series s = { 0 }, mixed = { 0 }, signals = { 0 }, gpu = { 0 }, hang = { 0 };

        IS(add(&s, won(fault(SIGSEGV, "a"))), SAME);
        SAYS(s, "the first time on a");
        IS(add(&s, won(fault(SIGSEGV, "a"))), SAME);
        SAYS(s, "2 times on a, with progress between");
        IS(add(&s, won(fault(SIGSEGV, "a"))), HOST_OUT);
        SAYS(s, "3 times on a, and on no other host");
        IS(add(&mixed, fault(SIGSEGV, "a")), SAME);
        IS(add(&mixed, won(exits(1, "KeyError", "b"))), SAME);
        IS(add(&mixed, won(fault(SIGSEGV, "a"))), SAME);
        IS(add(&mixed, fault(SIGSEGV, "a")), HOST_OUT);
        IS(add(&signals, won(fault(SIGSEGV, "a"))), SAME);
        IS(add(&signals, won(fault(SIGBUS, "a"))), SAME);
        IS(add(&signals, won(fault(SIGSEGV, "a"))), SAME);
        IS(add(&signals, won(fault(SIGSEGV, "a"))), HOST_OUT);
        for (int i = 0; i < 3; i++) {
                IS(add(&gpu, won(of(EVIDENCE_GPU, i < 2 ? "a" : "b"))), SAME);
                assert_int_equal(add(&hang, won(of(EVIDENCE_HANG, "a"))),
                                 i < 2 ? RESTART_SAME : RESTART_HOST_OUT);
        }
        IS(add(&gpu, won(of(EVIDENCE_GPU, "a"))), HOST_OUT);
        assert_string_equal(gpu.d.reason, "3 times on a"); /* b had one, too */
}

TEST(faults_of_several_hosts_with_progress_are_no_hosts)
{
        struct series s = { 0 }, signals = { 0 }, hang = { 0 };

        IS(add(&s, won(fault(SIGSEGV, "b"))), SAME);
        IS(add(&signals, won(fault(SIGABRT, "b"))), SAME); /* another signal is a fault, too */
        IS(add(&hang, won(of(EVIDENCE_HANG, "b"))), SAME);
        for (int i = 0; i < 16; i++) {
                IS(add(&s, won(fault(SIGSEGV, "a"))), SAME);
                IS(add(&signals, won(fault(SIGSEGV, "a"))), SAME);
                IS(add(&hang, won(of(EVIDENCE_HANG, "a"))), SAME);
        }
        SAYS(s, "a is not the only host with it");
}

TEST(a_fault_that_moves_with_its_rank_acquits_the_host)
{
        struct series s = { 0 };

        for (int i = 0; i < 2; i++)
                IS(add(&s, won(fault(SIGSEGV, "a"))), SAME);
        IS(add(&s, won(fault(SIGSEGV, "a"))), HOST_OUT);
        for (int i = 0; i < 10; i++) {
                IS(add(&s, won(fault(SIGSEGV, "b"))), SAME);
                assert_true(s.d.acquits);
                assert_true(restart_acquits(&s.past[2], &s.past[s.n - 1].evidence));
        }
        SAYS(s, "the failure of a came again on b: no host is to blame");
}

TEST(a_host_that_nothing_can_replace_stays_while_steps_are_won)
{
        const struct restart_limits alone = { 93, 3, false };
        struct series s = { 0 };

        for (int i = 0; i < 16; i++) {
                const struct restart_history h = { s.past, s.n };
                struct evidence e = won(fault(SIGSEGV, "a"));

                restart_decide(&s.d, &h, &e, &alone);
                assert_int_equal(s.d.verb, RESTART_SAME);
                s.past[s.n++] = (struct restart_past){ e, s.d.verb };
        }
        SAYS(s, "16 times on a, with progress between");
}

TEST(broken_gpus_of_two_hosts_are_two_broken_gpus)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_GPU, "a")), SAME);
        IS(add(&s, of(EVIDENCE_GPU, "a")), HOST_OUT);
        IS(add(&s, of(EVIDENCE_GPU, "b")), SAME);
        IS(add(&s, of(EVIDENCE_GPU, "b")), HOST_OUT);
}

TEST(a_hang_that_names_a_host_is_like_a_fault)
{
        struct series s = { 0 }, unnamed = { 0 }, wanders = { 0 };

        IS(add(&s, of(EVIDENCE_HANG, "a")), SAME);
        IS(add(&s, of(EVIDENCE_HANG, "a")), HOST_OUT);
        IS(add(&s, of(EVIDENCE_HANG, "b")), STOP);
        assert_true(s.d.acquits);
        IS(add(&unnamed, of(EVIDENCE_HANG, "")), SAME);
        SAYS(unnamed, "nothing points");
        IS(add(&unnamed, of(EVIDENCE_HANG, "")), SAME);
        IS(add(&unnamed, of(EVIDENCE_HANG, "")), STOP);
        IS(add(&wanders, of(EVIDENCE_HANG, "a")), SAME);
        IS(add(&wanders, of(EVIDENCE_HANG, "b")), SAME);
}

TEST(memory_and_shared_file_systems_have_one_more_try)
{
        struct series oom = { 0 }, full = { 0 }, both = { 0 };
        struct evidence e = of(EVIDENCE_FULL, "a");

        IS(add(&oom, of(EVIDENCE_OOM, "a")), SAME);
        SAYS(oom, "one more try");
        IS(add(&oom, of(EVIDENCE_OOM, "a")), STOP);
        e.error = EDQUOT;
        strcpy(e.path, "/ckpt/x");
        IS(add(&full, e), SAME);
        IS(add(&full, e), STOP);
        SAYS(full, "Disk quota exceeded (/ckpt/x)"); /* says which */
        IS(add(&both, e), SAME);
        IS(add(&both, of(EVIDENCE_OOM, "a")), SAME);
}

TEST(nothing_that_points_to_a_host_lasts_for_k_attempts_in_all)
{
        struct series s = { 0 };

        IS(add(&s, of(EVIDENCE_KILLED, "a")), SAME);
        IS(add(&s, exits(1, "KeyError", "b")), SAME);
        IS(add(&s, exits(1, "IndexError", "c")), STOP);
        SAYS(s, "3 attempts without progress");
}

TEST(attempts_with_progress_never_end)
{
        struct series s = { 0 };

        for (int i = 0; i < 15; i++)
                IS(add(&s, won(exits(1, "KeyError", "a"))), SAME);
}

TEST(every_row_is_told)
{
        assert_int_equal(restart_rule_count, 10);
        for (size_t i = 0; i < restart_rule_count; i++) {
                assert_true(*restart_rules[i].seen && *restart_rules[i].decision);
                assert_non_null(restart_rules[i].decide);
        }
        assert_string_equal(restart_verb_name(RESTART_HOST_OUT), "host out");
}
