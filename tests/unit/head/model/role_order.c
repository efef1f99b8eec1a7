/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of starts, readiness, ends, drains and restarts; role_storm.c has them in random
 * orders.
 */
#include "head/model/role_order.h"

#include <signal.h>
#include <stdio.h>

#include "lib/unit.h"

enum { ROLES_MAX = 5, MINUTE = 60000 };

/* A job under test; roles have one rank and one instance unless a test says otherwise. */
struct order_case {
        struct role_rule rules[ROLES_MAX];
        size_t n;
        struct role_order *order;
        char said[512];
        struct role_decision failed; /* of ROLE_FAIL */
};

static void add_role(struct order_case *c, struct role_rule rule)
{
        rule.n_ranks = MAX(rule.n_ranks, 1);
        rule.n_instances = MAX(rule.n_instances, 1);
        c->rules[c->n++] = rule;
}

static void add_after(struct order_case *c, int role, int after)
{
        intlist_add(&c->rules[role].after, after);
}

static void begin(struct order_case *c, int64_t linger_ms)
{
        c->order = role_order_create(c->rules, c->n, linger_ms);
}

static void finish(struct order_case *c)
{
        role_order_destroy(c->order);
        for (size_t r = 0; r < c->n; r++) {
                intlist_finish(&c->rules[r].after);
                intlist_finish(&c->rules[r].refers);
        }
        *c = (struct order_case){ 0 };
}

static const char *const reasons[] = {
        [ROLE_END_DONE] = "done",       [ROLE_END_FAILED] = "failed",   [ROLE_END_LEFT] = "left",
        [ROLE_END_UNREADY] = "unready", [ROLE_END_TIMEOUT] = "timeout", [ROLE_END_ORDER] = "order",
};

/* Returns the decisions since the last call: "start 0; term 1.2 500; end 1 left 0.1 for 2". */
static const char *said(struct order_case *c)
{
        struct role_decision d;
        size_t n = 0;

        c->said[0] = '\0';
        while (role_order_next(c->order, &d)) {
                char *to = c->said + n, part[16] = "";
                size_t room = sizeof(c->said) - n;

                if (d.verb == ROLE_FAIL) {
                        assert_int_equal(c->failed.verb, ROLE_START); /* once */
                        c->failed = d;
                        continue;
                }
                if (d.verb == ROLE_END && c->failed.verb == ROLE_FAIL) {
                        assert_int_equal(d.reason, c->failed.reason);
                        assert_int_equal(d.code, c->failed.code);
                }
                if (d.instance >= 0)
                        snprintf(part, sizeof(part), ".%d", d.instance);
                if (n)
                        n += (size_t)snprintf(to, room, "; ");
                to = c->said + n;
                room = sizeof(c->said) - n;
                if (d.verb == ROLE_START)
                        snprintf(to, room, "start %d%s", d.role, part);
                else if (d.verb == ROLE_TERM)
                        snprintf(to, room, "term %d%s %d", d.role, part, (int)d.time_ms);
                else if (d.verb == ROLE_TELL)
                        snprintf(to, room, "tell %d.%d %d", d.role, d.rank, d.code);
                else if (d.other >= 0)
                        snprintf(to, room, "end %d %s %d.%d for %d", d.code, reasons[d.reason],
                                 d.role, d.rank, d.other);
                else if (d.role >= 0)
                        snprintf(to, room, "end %d %s %d.%d%s%s", d.code, reasons[d.reason], d.role,
                                 d.rank, d.instance >= 0 ? " instance " : "",
                                 d.instance >= 0 ? part + 1 : "");
                else
                        snprintf(to, room, "end %d %s", d.code, reasons[d.reason]);
                n += strlen(to);
        }
        return c->said;
}

static void end_rank(struct order_case *c, int role, int rank, int code, int64_t now)
{
        role_order_ended(c->order, role, rank, code, 0, now);
}

/* Begins, and starts all roles at once. */
static void begin_all(struct order_case *c, int64_t linger_ms)
{
        begin(c, linger_ms);
        for (size_t r = 0; r < c->n; r++)
                role_order_started(c->order, (int)r, 0);
        said(c);
}

/* ---- cycles ---- */

TEST(a_cycle_has_its_path)
{
        CLEANUP(finish) struct order_case c = { 0 };
        struct intlist path = { 0 };
        char *text;

        for (int i = 0; i < 5; i++)
                add_role(&c, (struct role_rule){ 0 });
        add_after(&c, 0, 1);
        add_after(&c, 1, 2);
        add_after(&c, 0, 2);
        add_after(&c, 4, 0);
        assert_false(role_order_find_cycle(c.rules, c.n, &path));
        assert_int_equal(path.n, 0);
        add_after(&c, 2, 3);
        add_after(&c, 3, 1);
        assert_true(role_order_find_cycle(c.rules, c.n, &path));
        assert_int_equal(path.n, 4);
        assert_int_equal(path.v[0], 1);
        assert_int_equal(path.v[1], 2);
        assert_int_equal(path.v[2], 3);
        assert_int_equal(path.v[3], 1);
        intlist_finish(&path);

        c.rules[2].after.n = 0;
        add_after(&c, 4, 4);
        assert_true(role_order_find_cycle(c.rules, c.n, &path));
        text = intlist_fold(&path);
        assert_int_equal(path.n, 2);
        assert_int_equal(path.v[0], 4);
        assert_int_equal(path.v[1], 4);
        free(text);
        intlist_finish(&path);
        c.order = role_order_create(c.rules, 0, 0);
}

/* ---- starts ---- */

TEST(a_role_starts_when_all_before_it_are_ready)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 4, .n_instances = 2, .probed = true });
        add_role(&c, (struct role_rule){ 0 });
        add_role(&c, (struct role_rule){ 0 });
        add_after(&c, 2, 0);
        add_after(&c, 2, 1);
        begin(&c, 0);
        assert_string_equal(said(&c), "start 0; start 1");
        assert_true(role_order_waits(c.order, 2, 0));
        assert_true(role_order_waits(c.order, 2, 1));
        assert_false(role_order_waits(c.order, 1, 0));
        role_order_started(c.order, 1, 10); /* is ready then */
        assert_false(role_order_waits(c.order, 2, 1));
        role_order_started(c.order, 0, 20);
        assert_string_equal(said(&c), "");
        role_order_ready(c.order, 0, 1, 30);
        role_order_ready(c.order, 0, 1, 40);
        assert_int_equal(role_order_count_ready(c.order, 0), 1);
        assert_string_equal(said(&c), "");
        role_order_ready(c.order, 0, 0, 50);
        assert_string_equal(said(&c), "start 2");
        assert_false(role_order_waits(c.order, 2, 0));
        role_order_ready(c.order, 0, 0, 60);
        role_order_started(c.order, 0, 60);
        assert_string_equal(said(&c), "");
}

TEST(a_role_that_ends_at_once_was_ready_with_its_start)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 2 });
        add_role(&c, (struct role_rule){ 0 });
        add_after(&c, 1, 0);
        begin(&c, 0);
        assert_string_equal(said(&c), "start 0");
        end_rank(&c, 0, 0, 0, 1);
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 1, 0, 2); /* before role_order_started() */
        assert_string_equal(said(&c), "start 1");
        role_order_started(c.order, 0, 3);
        end_rank(&c, 1, 0, 0, 4);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(readiness_has_a_limit)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 6,
                                         .n_instances = 3,
                                         .probed = true,
                                         .ready_timeout_ms = 10 * MINUTE });
        add_role(&c, (struct role_rule){ .probed = true });
        begin(&c, 0);
        assert_int_equal(role_order_deadline(c.order), -1); /* runs from the start */
        role_order_started(c.order, 1, 5);
        assert_int_equal(role_order_deadline(c.order), -1); /* never */
        role_order_started(c.order, 0, 7);
        assert_int_equal(role_order_deadline(c.order), 10 * MINUTE + 7);
        role_order_ready(c.order, 0, 0, 8);
        said(&c);
        role_order_tick(c.order, 10 * MINUTE + 6);
        assert_string_equal(said(&c), "");
        role_order_tick(c.order, 10 * MINUTE + 7);
        assert_string_equal(said(&c), "end 124 timeout 0.2 instance 1");
        assert_int_equal(role_order_deadline(c.order), -1);
}

TEST(readiness_in_time_lifts_the_limit)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .probed = true, .ready_timeout_ms = MINUTE });
        begin(&c, 0);
        role_order_started(c.order, 0, 0);
        role_order_ready(c.order, 0, 0, MINUTE - 1);
        assert_int_equal(role_order_deadline(c.order), -1);
        role_order_tick(c.order, 2 * MINUTE);
        assert_string_equal(said(&c), "start 0");
}

TEST(a_limit_comes_before_a_later_input)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .probed = true, .ready_timeout_ms = MINUTE });
        add_role(&c, (struct role_rule){ .probed = true, .ready_timeout_ms = MINUTE / 2 });
        begin_all(&c, 0);
        end_rank(&c, 0, 0, 3, 5 * MINUTE); /* the first limit was earlier */
        assert_string_equal(said(&c), "end 124 timeout 1.0 instance 0");
}

/* ---- ends ---- */

TEST(without_main_the_job_ends_with_all_roles)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 2 });
        add_role(&c, (struct role_rule){ .ends_ok = true });
        intlist_add(&c.rules[0].refers, 1);
        begin_all(&c, MINUTE);
        end_rank(&c, 1, 0, 9, 1); /* allowed */
        end_rank(&c, 0, 1, 0, 2);
        end_rank(&c, 0, 1, 1, 2); /* a second end is none */
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 0, 0, 3);
        assert_string_equal(said(&c), "end 0 done"); /* nothing is left to linger for */
}

TEST(without_main_any_failure_ends_the_job)
{
        CLEANUP(finish) struct order_case c = { 0 };
        struct role_decision d;

        add_role(&c, (struct role_rule){ .n_ranks = 3 });
        add_role(&c, (struct role_rule){ 0 });
        begin(&c, 0);
        role_order_started(c.order, 0, 0);
        said(&c);
        assert_true(role_order_is_failure(c.order, 0, 1, 139));
        assert_false(role_order_is_failure(c.order, 0, 1, 0));
        role_order_ended(c.order, 0, 1, 128 + SIGSEGV, SIGSEGV, 1);
        assert_true(role_order_next(c.order, &d));
        assert_int_equal(d.verb, ROLE_END);
        assert_int_equal(d.code, 139);
        assert_int_equal(d.signal, SIGSEGV);
        assert_int_equal(d.rank, 1);
        assert_false(role_order_is_failure(c.order, 0, 2, 1));
        end_rank(&c, 0, 2, 1, 2);
        role_order_tick(c.order, MINUTE);
        assert_string_equal(said(&c), "");
}

TEST(main_roles_end_the_job_with_0)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true, .n_ranks = 2 });
        add_role(&c, (struct role_rule){ .is_main = true });
        add_role(&c, (struct role_rule){ .drain_ms = MINUTE });
        add_role(&c, (struct role_rule){ .probed = true });
        add_after(&c, 0, 2);
        begin(&c, 500);
        said(&c);
        role_order_started(c.order, 1, 0);
        role_order_started(c.order, 2, 0);
        role_order_started(c.order, 3, 0);
        role_order_started(c.order, 0, 0);
        said(&c);
        end_rank(&c, 1, 0, 0, 1000);
        end_rank(&c, 0, 0, 0, 2000);
        assert_int_equal(role_order_deadline(c.order), -1);
        end_rank(&c, 0, 1, 0, 3000);
        assert_string_equal(said(&c), "");
        assert_int_equal(role_order_deadline(c.order), 3500);
        end_rank(&c, 2, 0, 7, 3100); /* whatever it returns then */
        role_order_fail(c.order, 3, 0, 1, 3200);
        assert_string_equal(said(&c), "");
        role_order_tick(c.order, 3500);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(lingering_ends_with_the_last_helper_and_starts_none)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true });
        add_role(&c, (struct role_rule){ .probed = true });
        add_role(&c, (struct role_rule){ 0 });
        add_after(&c, 2, 1);
        begin(&c, MINUTE);
        role_order_started(c.order, 0, 0);
        role_order_started(c.order, 1, 0);
        said(&c);
        end_rank(&c, 0, 0, 0, 1);
        role_order_ready(c.order, 1, 0, 2); /* role 2 does not start any more */
        assert_string_equal(said(&c), "");
        end_rank(&c, 1, 0, 1, 3);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(without_linger_the_end_of_main_is_that_of_the_job)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true });
        add_role(&c, (struct role_rule){ 0 });
        begin_all(&c, 0);
        end_rank(&c, 0, 0, 0, 1);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(a_main_role_fails_with_its_code)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true, .ends_ok = true, .n_ranks = 4 });
        add_role(&c, (struct role_rule){ 0 });
        begin(&c, MINUTE);
        role_order_started(c.order, 0, 0);
        said(&c);
        end_rank(&c, 0, 2, 0, 1);
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 3, 42, 1);
        assert_string_equal(said(&c), "end 42 failed 0.3");
}

/* A job of a main role 0, a helper 1 of two instances with two ranks each, and a helper 2 that is
 * --after the first. */
static void begin_with_helpers(struct order_case *c, bool ends_ok, bool refers)
{
        add_role(c, (struct role_rule){ .is_main = true });
        add_role(c, (struct role_rule){ .n_ranks = 4, .n_instances = 2, .ends_ok = ends_ok });
        add_role(c, (struct role_rule){ 0 });
        if (refers)
                intlist_add(&c->rules[2].refers, 1);
        else
                add_after(c, 2, 1);
        begin_all(c, 0);
}

TEST(a_helper_that_others_need_must_not_end)
{
        for (int refers = 0; refers < 2; refers++) {
                CLEANUP(finish) struct order_case c = { 0 };

                begin_with_helpers(&c, false, refers);
                end_rank(&c, 1, 2, 0, 1); /* another rank of the instance lives */
                assert_string_equal(said(&c), "");
                assert_true(role_order_is_failure(c.order, 1, 3, 0));
                assert_false(role_order_is_failure(c.order, 1, 0, 0));
                end_rank(&c, 1, 3, 0, 2);
                assert_string_equal(said(&c), "end 1 left 1.3 for 2");
                finish(&c);

                begin_with_helpers(&c, false, refers);
                end_rank(&c, 1, 0, 3, 1);
                assert_string_equal(said(&c), "end 3 failed 1.0");
        }
}

TEST(a_helper_is_not_needed_by_a_role_that_has_ended)
{
        CLEANUP(finish) struct order_case c = { 0 };

        begin_with_helpers(&c, false, false);
        end_rank(&c, 2, 0, 0, 1);
        assert_string_equal(said(&c), "tell 2.0 0");
        for (int rank = 0; rank < 4; rank++)
                end_rank(&c, 1, rank, 0, 2);
        assert_string_equal(said(&c), "tell 1.3 0");
        end_rank(&c, 0, 0, 0, 3);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(ends_ok_allows_a_helper_to_end)
{
        CLEANUP(finish) struct order_case c = { 0 };

        begin_with_helpers(&c, true, false);
        for (int rank = 0; rank < 4; rank++)
                end_rank(&c, 1, rank, rank, 1);
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 0, 0, 2);
        assert_string_equal(said(&c), "end 0 done");
}

TEST(the_end_of_a_helper_that_no_role_needs_is_told)
{
        CLEANUP(finish) struct order_case c = { 0 };

        begin_with_helpers(&c, false, false);
        end_rank(&c, 2, 0, 5, 1);
        assert_string_equal(said(&c), "tell 2.0 5");
        end_rank(&c, 1, 0, 0, 2); /* role 2, that is --after it, has ended */
        end_rank(&c, 1, 1, 6, 2);
        end_rank(&c, 1, 2, 7, 2);
        assert_string_equal(said(&c), "tell 1.1 6");
        end_rank(&c, 1, 3, 0, 2);
        assert_string_equal(said(&c), "");
}

TEST(an_end_before_readiness_fails_those_that_wait)
{
        static const struct {
                bool main, ends_ok;
                int code;
                const char *said;
        } cases[] = {
                { false, false, 0, "end 1 unready 0.1 for 1" },
                { false, true, 0, "end 1 unready 0.1 for 1" },
                { false, true, 4, "end 4 unready 0.1 for 1" },
                { true, false, 0, "end 1 unready 0.1 for 1" },
                { true, false, 4, "end 4 failed 0.1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(finish) struct order_case c = { 0 };

                add_role(&c, (struct role_rule){ .n_ranks = 2,
                                                 .n_instances = 2,
                                                 .probed = true,
                                                 .is_main = cases[i].main,
                                                 .ends_ok = cases[i].ends_ok });
                add_role(&c, (struct role_rule){ .is_main = true });
                add_after(&c, 1, 0);
                begin(&c, 0);
                role_order_started(c.order, 0, 0);
                role_order_ready(c.order, 0, 0, 1);
                said(&c);
                if (cases[i].main || cases[i].ends_ok)
                        end_rank(&c, 0, 0, 0, 2); /* was ready */
                assert_string_equal(said(&c), "");
                end_rank(&c, 0, 1, cases[i].code, 3);
                assert_string_equal(said(&c), cases[i].said);
        }
}

TEST(the_end_of_main_comes_before_a_role_that_waits_in_vain)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .probed = true, .is_main = true });
        add_role(&c, (struct role_rule){ 0 });
        add_after(&c, 1, 0);
        begin(&c, 0);
        role_order_started(c.order, 0, 0);
        said(&c);
        end_rank(&c, 0, 0, 0, 1);
        assert_string_equal(said(&c), "end 0 done");
}

/* ---- drains ---- */

TEST(roles_drain_before_all_is_stopped)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 2, .drain_ms = 5 * MINUTE });
        add_role(&c, (struct role_rule){ .drain_ms = MINUTE });
        add_role(&c, (struct role_rule){ .probed = true });
        add_role(&c, (struct role_rule){ .drain_ms = MINUTE });
        add_after(&c, 3, 2);
        begin(&c, 0);
        for (int r = 0; r < 3; r++)
                role_order_started(c.order, r, 0);
        said(&c);
        end_rank(&c, 0, 0, 3, 1000);
        assert_string_equal(said(&c), "term 0 300000; term 1 60000");
        assert_int_equal(role_order_deadline(c.order), MINUTE + 1000);
        role_order_ready(c.order, 2, 0, 2000); /* role 3 does not start any more */
        end_rank(&c, 2, 0, 9, 2000);
        role_order_tick(c.order, 2 * MINUTE); /* role 1 lives on */
        assert_string_equal(said(&c), "");
        assert_int_equal(role_order_deadline(c.order), 5 * MINUTE + 1000);
        end_rank(&c, 0, 1, 0, 3 * MINUTE);
        assert_string_equal(said(&c), "end 3 failed 0.0");
}

TEST(a_drain_has_a_limit)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .drain_ms = MINUTE });
        add_role(&c, (struct role_rule){ .probed = true, .ready_timeout_ms = 10 });
        begin_all(&c, 0);
        role_order_tick(c.order, 10);
        assert_string_equal(said(&c), "term 0 60000");
        assert_int_equal(c.failed.reason, ROLE_END_TIMEOUT); /* told before the drain */
        assert_int_equal(c.failed.role, 1);
        role_order_tick(c.order, MINUTE + 9);
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 0, 1, 2 * MINUTE);
        assert_string_equal(said(&c), "end 124 timeout 1.0 instance 0");
}

TEST(reasons_of_the_launcher_drain_too)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .drain_ms = MINUTE });
        begin(&c, 0);
        said(&c);
        role_order_fail(c.order, -1, -1, 75, 0);
        assert_string_equal(said(&c), "term 0 60000");  /* it may be starting */
        assert_int_not_equal(c.failed.verb, ROLE_FAIL); /* the caller knows */
        role_order_started(c.order, 0, 1);
        role_order_fail(c.order, 0, 0, 1, 1);
        assert_string_equal(said(&c), "");
        end_rank(&c, 0, 0, 1, 2);
        assert_string_equal(said(&c), "end 75 order");
}

/* ---- restarts ---- */

TEST(an_instance_starts_again_alone)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true });
        add_role(&c, (struct role_rule){ .n_ranks = 4,
                                         .n_instances = 2,
                                         .probed = true,
                                         .ready_timeout_ms = MINUTE,
                                         .scope = ROLE_SCOPE_ALONE });
        add_after(&c, 0, 1);
        begin(&c, 0);
        role_order_started(c.order, 1, 0);
        role_order_ready(c.order, 1, 0, 0);
        assert_string_equal(said(&c), "start 1");
        role_order_restart(c.order, 1, 1, 1);
        assert_string_equal(said(&c), "term 1.0 0");
        end_rank(&c, 1, 0, 143, 2);
        assert_string_equal(said(&c), "start 1.0");
        assert_int_equal(role_order_count_ready(c.order, 1), 0);
        assert_int_equal(role_order_deadline(c.order), -1);
        role_order_ready(c.order, 1, 1, 3);
        role_order_started(c.order, 1, 4);
        assert_int_equal(role_order_deadline(c.order), MINUTE + 4);
        assert_string_equal(said(&c), "");
        role_order_ready(c.order, 1, 0, 5);
        assert_string_equal(said(&c), "start 0");
        role_order_started(c.order, 0, 6);
        end_rank(&c, 1, 0, 3, 7); /* not restarted this time */
        assert_string_equal(said(&c), "end 3 failed 1.0");
}

TEST(a_role_starts_again_as_a_whole)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .n_ranks = 3, .scope = ROLE_SCOPE_ROLE });
        add_role(&c, (struct role_rule){ 0 });
        begin_all(&c, 0);
        end_rank(&c, 0, 0, 0, 1);
        role_order_restart(c.order, 0, 1, 2);
        assert_string_equal(said(&c), "term 0 0");
        end_rank(&c, 0, 2, 143, 3);
        assert_string_equal(said(&c), "start 0");
        assert_int_equal(role_order_count_ready(c.order, 0), 0);
        role_order_started(c.order, 0, 4);
        end_rank(&c, 1, 0, 0, 5);
        for (int rank = 0; rank < 3; rank++) {
                assert_string_equal(said(&c), "");
                end_rank(&c, 0, rank, 0, 6);
        }
        assert_string_equal(said(&c), "end 0 done");
}

TEST(nothing_starts_again_after_a_failure)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c,
                 (struct role_rule){ .n_ranks = 2, .scope = ROLE_SCOPE_ROLE, .drain_ms = MINUTE });
        add_role(&c, (struct role_rule){ 0 });
        begin_all(&c, 0);
        role_order_restart(c.order, 0, 1, 1);
        assert_string_equal(said(&c), "term 0 0");
        end_rank(&c, 1, 0, 8, 2);
        assert_string_equal(said(&c), "term 0 60000");
        end_rank(&c, 0, 0, 143, 3);
        assert_string_equal(said(&c), "end 8 failed 1.0");
        role_order_restart(c.order, 0, 0, 4);
        assert_string_equal(said(&c), "");
}

TEST(a_failed_helper_may_start_again_while_the_job_goes_on)
{
        CLEANUP(finish) struct order_case c = { 0 };

        add_role(&c, (struct role_rule){ .is_main = true });
        add_role(&c, (struct role_rule){ .scope = ROLE_SCOPE_ROLE });
        add_role(&c, (struct role_rule){ .scope = ROLE_SCOPE_ROLE, .ends_ok = true });
        add_role(&c, (struct role_rule){ 0 });
        begin(&c, MINUTE);
        for (int role = 0; role < 4; role++)
                role_order_started(c.order, role, 0);
        said(&c);
        assert_false(role_order_is_failure(c.order, 1, 0, 3)); /* no role needs it */
        assert_true(role_order_may_restart(c.order, 1, 0, 3));
        assert_false(role_order_may_restart(c.order, 1, 0, 0));
        assert_false(role_order_may_restart(c.order, 2, 0, 3)); /* --ends ok */
        assert_false(role_order_may_restart(c.order, 3, 0, 3)); /* with the job only */
        role_order_restart(c.order, 1, 0, 1);
        assert_string_equal(said(&c), "start 1");
        assert_true(role_order_may_restart(c.order, 1, 0, 3));
        end_rank(&c, 0, 0, 0, 2);
        assert_true(role_order_lingers(c.order));
        assert_false(role_order_may_restart(c.order, 1, 0, 3));
        role_order_restart(c.order, 1, 0, 3); /* is an end now */
        end_rank(&c, 2, 0, 0, 4);
        end_rank(&c, 3, 0, 0, 5);
        assert_string_equal(said(&c), "end 0 done");
}
