/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each input first lets the time pass (pass_time): an earlier limit comes first. The input then
 * changes the state of one role, and makes decisions: start_roles() while the job goes on,
 * finish_roles() after the end of --main, finish_drain() after a failure.
 *
 *   GOING ---- all of --main ended with 0 ----> LINGERING ---.
 *     |                                                      |
 *     '------- a failure ----> DRAINING ---------------------+--> OVER
 */
#include "head/model/role_order.h"

#include <stdlib.h>

#include "base/exit_code.h"
#include "base/memory.h"

enum order_phase { ORDER_GOING, ORDER_LINGERING, ORDER_DRAINING, ORDER_OVER };

enum order_life {
        ORDER_WAITING,
        ORDER_STARTING, /* ROLE_START was decided */
        ORDER_RUNNING,
        ORDER_ENDED, /* all ranks */
};

/* An instance of a role. @restarting: its ranks end, and are to start again. */
struct order_instance {
        int living; /* ranks not ended, also before the start */
        bool ready, restarting;
};

struct order_role {
        enum order_life life;
        int n_ended, n_ready; /* ranks; instances */
        bool *ended;          /* by rank */
        struct order_instance *instances;
        int64_t limit_ms; /* of readiness, in GOING, or drain; -1 = none */
        bool told;        /* ROLE_TELL */
};

struct role_order {
        const struct role_rule *rules;
        size_t n;
        bool has_main;
        enum order_phase phase;
        /* --linger, and when that time is over on the clock of the inputs. */
        int64_t linger_ms, linger_until;
        struct order_role *roles;
        struct role_decision end; /* DRAINING */
        struct role_decision *queue;
        size_t n_queue, cap, taken; /* @taken: decisions that role_order_next() has given out */
};

/* ---- cycles ---- */

/* Follows --after from @role; @seen counts the roles on the way, 0 = not seen, -1 = no cycle. */
static bool follow_after(const struct role_rule *rules, int role, int *seen, int depth,
                         struct intlist *path)
{
        const struct intlist *after = &rules[role].after;

        seen[role] = depth;
        intlist_add(path, role);
        for (size_t i = 0; i < after->n; i++) {
                int next = after->v[i];

                /* The role is on the way: the cycle is the end of the path from there on, moved to
                 * the front. */
                if (seen[next] > 0) {
                        intlist_add(path, next);
                        for (size_t k = 0; k + (size_t)seen[next] <= path->n; k++)
                                path->v[k] = path->v[k + (size_t)seen[next] - 1];
                        path->n -= (size_t)seen[next] - 1;
                        return true;
                }
                if (!seen[next] && follow_after(rules, next, seen, depth + 1, path))
                        return true;
        }
        seen[role] = -1;
        path->n--;
        return false;
}

bool role_order_find_cycle(const struct role_rule *rules, size_t n, struct intlist *path)
{
        int *seen = xcalloc(n, sizeof(*seen));
        bool found = false;

        for (size_t r = 0; !found && r < n; r++)
                found = !seen[r] && follow_after(rules, (int)r, seen, 1, path);
        free(seen);
        if (!found)
                intlist_finish(path);
        return found;
}

/* ---- decisions ---- */

static void add_decision(struct role_order *o, struct role_decision d)
{
        o->queue = xgrow(o->queue, o->n_queue, &o->cap, sizeof(*o->queue));
        o->queue[o->n_queue++] = d;
}

bool role_order_next(struct role_order *o, struct role_decision *ret)
{
        if (o->taken == o->n_queue) {
                o->taken = o->n_queue = 0;
                return false;
        }
        *ret = o->queue[o->taken++];
        return true;
}

/* Adds the last decision. Inputs that follow change nothing. */
static void end_job(struct role_order *o, struct role_decision end)
{
        o->phase = ORDER_OVER;
        end.verb = ROLE_END;
        add_decision(o, end);
}

/* ---- queries ---- */

/* Whether ranks of the role run, or are to run after ROLE_START. */
static bool is_living(const struct order_role *r)
{
        return r->life == ORDER_STARTING || r->life == ORDER_RUNNING;
}

static bool is_role_ready(const struct role_order *o, int role)
{
        return o->roles[role].n_ready == o->rules[role].n_instances;
}

static int find_instance(const struct role_order *o, int role, int rank)
{
        const struct role_rule *rule = &o->rules[role];

        return (int)((int64_t)rank * rule->n_instances / rule->n_ranks);
}

int role_order_first_rank(const struct role_order *o, int role, int instance)
{
        const struct role_rule *rule = &o->rules[role];

        return (int)(((int64_t)instance * rule->n_ranks + rule->n_instances - 1) /
                     rule->n_instances);
}

/* Whether the job waits for the end of the role. */
static bool is_awaited(const struct role_order *o, int role)
{
        return o->rules[role].is_main || !o->has_main;
}

/* Returns an unfinished role --after @role or with a reference to @role, -1 = none. A role that has
 * not started needs @role as well. */
static int find_needer(const struct role_order *o, int role)
{
        for (size_t r = 0; r < o->n; r++)
                if ((int)r != role && o->roles[r].life != ORDER_ENDED &&
                    (intlist_has(&o->rules[r].after, role) ||
                     intlist_has(&o->rules[r].refers, role)))
                        return (int)r;
        return -1;
}

bool role_order_waits(const struct role_order *o, int role, int other)
{
        return o->roles[role].life == ORDER_WAITING && intlist_has(&o->rules[role].after, other) &&
               !is_role_ready(o, other);
}

/* Returns a role that has not started because @role is not ready, -1 = none. */
static int find_waiting_role(const struct role_order *o, int role)
{
        for (size_t r = 0; r < o->n; r++)
                if (role_order_waits(o, (int)r, role))
                        return (int)r;
        return -1;
}

int role_order_count_ready(const struct role_order *o, int role)
{
        return o->roles[role].n_ready;
}

int64_t role_order_deadline(const struct role_order *o)
{
        int64_t first = -1;

        if (o->phase == ORDER_LINGERING)
                return o->linger_until;
        for (size_t r = 0; o->phase != ORDER_OVER && r < o->n; r++) {
                /* Limits of readiness while the job goes on, of drains after a failure. */
                int64_t limit = o->roles[r].limit_ms;

                if (limit >= 0 && (first < 0 || limit < first))
                        first = limit;
        }
        return first;
}

/* Fills in the end of the job that follows from the end of a rank, the @last one of the instance
 * or not. False: the job goes on. */
static bool classify_end(const struct role_order *o, int role, int rank, int code, bool last,
                         struct role_decision *ret)
{
        const struct role_rule *rule = &o->rules[role];
        const struct order_instance *i = &o->roles[role].instances[find_instance(o, role, rank)];
        int needer = find_needer(o, role), waiter = i->ready ? -1 : find_waiting_role(o, role);
        bool allowed = rule->ends_ok && !rule->is_main;

        *ret = (struct role_decision){
                .role = role, .instance = -1, .rank = rank, .other = -1, .code = code
        };
        ret->reason = ROLE_END_FAILED;
        if (code && !allowed && (is_awaited(o, role) || needer >= 0))
                return true;
        /* The rules below fail the job even when the rank ended with 0. */
        ret->code = code ? code : EXIT_FAILURE;
        if (last && rule->probed && waiter >= 0) {
                ret->reason = ROLE_END_UNREADY;
                ret->other = waiter;
                return true;
        }
        ret->reason = ROLE_END_LEFT;
        ret->other = needer;
        return last && !code && !allowed && !is_awaited(o, role) && needer >= 0;
}

bool role_order_is_failure(const struct role_order *o, int role, int rank, int code)
{
        const struct order_role *r = &o->roles[role];
        struct role_decision end;

        return o->phase == ORDER_GOING && is_living(r) && !r->ended[rank] &&
               classify_end(o, role, rank, code,
                            r->instances[find_instance(o, role, rank)].living == 1, &end);
}

bool role_order_restarts(const struct role_order *o, int role, int rank)
{
        return o->roles[role].instances[find_instance(o, role, rank)].restarting;
}

bool role_order_has_ended(const struct role_order *o, int role, int rank)
{
        return o->roles[role].ended[rank];
}

bool role_order_may_restart(const struct role_order *o, int role, int rank, int code)
{
        const struct role_rule *rule = &o->rules[role];
        const struct order_role *r = &o->roles[role];

        if (rule->scope == ROLE_SCOPE_JOB || o->phase != ORDER_GOING || !is_living(r) ||
            r->ended[rank])
                return false;
        return (code && !rule->ends_ok) || role_order_is_failure(o, role, rank, code);
}

bool role_order_lingers(const struct role_order *o)
{
        return o->phase == ORDER_LINGERING;
}

/* ---- starts ---- */

/* Decides the start of a role; @instance -1 = all. The limit of readiness runs from the real
 * start. */
static void start_role(struct role_order *o, int role, int instance)
{
        o->roles[role].life = ORDER_STARTING;
        o->roles[role].limit_ms = -1;
        add_decision(o, (struct role_decision){ .verb = ROLE_START,
                                                .role = role,
                                                .instance = instance,
                                                .rank = -1,
                                                .other = -1 });
}

/* Starts all roles with nothing to wait for. */
static void start_roles(struct role_order *o)
{
        for (size_t r = 0; r < o->n; r++) {
                const struct intlist *after = &o->rules[r].after;
                bool waits = o->roles[r].life != ORDER_WAITING;

                for (size_t i = 0; !waits && i < after->n; i++)
                        waits = !is_role_ready(o, after->v[i]);
                if (!waits)
                        start_role(o, (int)r, -1);
        }
}

static void set_instance_ready(struct role_order *o, int role, int instance)
{
        struct order_role *r = &o->roles[role];

        r->n_ready += !r->instances[instance].ready;
        r->instances[instance].ready = true;
        /* In a drain the limit is that of the drain, and stays. */
        if (is_role_ready(o, role) && o->phase == ORDER_GOING)
                r->limit_ms = -1;
}

/* Makes a role ready whose start suffices. Also at the end of a role whose start was never told. */
static void set_role_started(struct role_order *o, int role)
{
        for (int i = 0; !o->rules[role].probed && i < o->rules[role].n_instances; i++)
                set_instance_ready(o, role, i);
}

/* ---- ends ---- */

/* Ends the job when each role with a drain has ended or used up the time. */
static void finish_drain(struct role_order *o, int64_t now)
{
        bool drains = false;

        for (size_t r = 0; r < o->n; r++) {
                /* -1 is below each time, so roles without a drain stay as they are. */
                if (!is_living(&o->roles[r]) || o->roles[r].limit_ms <= now)
                        o->roles[r].limit_ms = -1;
                drains = drains || o->roles[r].limit_ms >= 0;
        }
        if (!drains)
                end_job(o, o->end);
}

/* Fails the job: no role starts any more, drains begin, and ROLE_END follows the last drain, at
 * once where there is none. ROLE_FAIL tells a reason that no rank's end tells. */
static void fail_order(struct role_order *o, struct role_decision end, int64_t now)
{
        o->phase = ORDER_DRAINING;
        o->end = end;
        if (end.reason != ROLE_END_FAILED && end.reason != ROLE_END_ORDER) {
                end.verb = ROLE_FAIL;
                add_decision(o, end);
        }
        for (size_t r = 0; r < o->n; r++) {
                int64_t drain = is_living(&o->roles[r]) ? o->rules[r].drain_ms : 0;

                o->roles[r].limit_ms = drain ? now + drain : -1;
                if (drain)
                        add_decision(o, (struct role_decision){ .verb = ROLE_TERM,
                                                                .role = (int)r,
                                                                .instance = -1,
                                                                .rank = -1,
                                                                .other = -1,
                                                                .time_ms = drain });
        }
        finish_drain(o, now);
}

/* Ends the job when nothing is left to wait for. */
static void finish_roles(struct role_order *o, int64_t now)
{
        static const struct role_decision done = {
                .reason = ROLE_END_DONE, .role = -1, .instance = -1, .rank = -1, .other = -1
        };
        bool awaited = false, living = false;

        for (size_t r = 0; r < o->n; r++) {
                awaited = awaited || (is_awaited(o, (int)r) && o->roles[r].life != ORDER_ENDED);
                living = living || is_living(&o->roles[r]);
        }
        if (awaited)
                return;
        if (o->phase == ORDER_GOING) {
                o->phase = ORDER_LINGERING;
                o->linger_until = now + o->linger_ms;
        }
        if (!living || now >= o->linger_until)
                end_job(o, done);
}

static void check_ready_limits(struct role_order *o, int64_t now)
{
        int64_t limit = role_order_deadline(o);
        int role = 0, i = 0;

        if (limit < 0 || limit > now)
                return;
        /* The role whose limit is over, and its first instance that is not ready. */
        while (o->roles[role].limit_ms != limit)
                role++;
        while (o->roles[role].instances[i].ready)
                i++;
        fail_order(o,
                   (struct role_decision){ .reason = ROLE_END_TIMEOUT,
                                           .role = role,
                                           .instance = i,
                                           .rank = role_order_first_rank(o, role, i),
                                           .other = -1,
                                           .code = EX_TIME_LIMIT },
                   now);
}

/* Acts on limits that are over at @now. */
static void pass_time(struct role_order *o, int64_t now)
{
        if (o->phase == ORDER_GOING)
                check_ready_limits(o, now);
        if (o->phase == ORDER_LINGERING)
                finish_roles(o, now);
        if (o->phase == ORDER_DRAINING)
                finish_drain(o, now);
}

void role_order_tick(struct role_order *o, int64_t now)
{
        pass_time(o, now);
}

void role_order_started(struct role_order *o, int role, int64_t now)
{
        const struct role_rule *rule = &o->rules[role];
        struct order_role *r = &o->roles[role];

        pass_time(o, now);
        if (r->life != ORDER_STARTING)
                return;
        r->life = ORDER_RUNNING;
        set_role_started(o, role);
        if (o->phase != ORDER_GOING)
                return;
        /* All instances may have become ready before the last rank has started. */
        if (rule->probed && rule->ready_timeout_ms && !is_role_ready(o, role))
                r->limit_ms = now + rule->ready_timeout_ms;
        start_roles(o);
}

void role_order_ready(struct role_order *o, int role, int instance, int64_t now)
{
        pass_time(o, now);
        if (!is_living(&o->roles[role]) || !o->roles[role].instances[instance].living)
                return;
        set_instance_ready(o, role, instance);
        if (o->phase == ORDER_GOING)
                start_roles(o);
}

/* Counts the end of a rank. False: the rank was counted before, or does not run. */
static bool count_end(struct role_order *o, int role, int rank)
{
        struct order_role *r = &o->roles[role];

        if (!is_living(r) || r->ended[rank])
                return false;
        r->ended[rank] = true;
        r->instances[find_instance(o, role, rank)].living--;
        if (++r->n_ended < o->rules[role].n_ranks)
                return true;
        set_role_started(o, role);
        r->life = ORDER_ENDED;
        r->limit_ms = -1;
        return true;
}

/* Tells the end of a helper that no role needs: the first failed rank, or the end of all. */
static void tell_ended_helper(struct role_order *o, int role, int rank, int code)
{
        struct order_role *r = &o->roles[role];

        if (r->told || is_awaited(o, role) || o->rules[role].ends_ok ||
            (!code && r->life != ORDER_ENDED))
                return;
        r->told = true;
        add_decision(o, (struct role_decision){ .verb = ROLE_TELL,
                                                .role = role,
                                                .instance = -1,
                                                .rank = rank,
                                                .other = -1,
                                                .code = code });
}

/* ---- restarts ---- */

/* Counts the ranks of the instance as living again, and the instance as not ready. */
static void reset_instance(struct role_order *o, int role, int instance)
{
        struct order_role *r = &o->roles[role];
        struct order_instance *i = &r->instances[instance];

        for (int rank = role_order_first_rank(o, role, instance);
             rank < role_order_first_rank(o, role, instance + 1); rank++) {
                r->ended[rank] = false;
                r->n_ended--;
                i->living++;
        }
        r->n_ready -= i->ready;
        i->ready = i->restarting = false;
}

/* Starts the instances named by role_order_restart() again, once all ranks there have ended. */
static void start_ended_again(struct role_order *o, int role)
{
        const struct role_rule *rule = &o->rules[role];
        struct order_role *r = &o->roles[role];
        bool whole = rule->scope == ROLE_SCOPE_ROLE;

        /* A whole role starts together: a rank that starts early would meet ranks of before. */
        if (whole && r->n_ended < rule->n_ranks)
                return;
        for (int i = 0; i < rule->n_instances; i++)
                if (r->instances[i].restarting && !r->instances[i].living) {
                        reset_instance(o, role, i);
                        if (!whole)
                                start_role(o, role, i);
                }
        if (whole)
                start_role(o, role, -1);
}

void role_order_restart(struct role_order *o, int role, int rank, int64_t now)
{
        const struct role_rule *rule = &o->rules[role];
        struct order_role *r = &o->roles[role];
        bool whole = rule->scope == ROLE_SCOPE_ROLE;
        int instance = find_instance(o, role, rank);

        pass_time(o, now);
        if (o->phase != ORDER_GOING) { /* a limit was over before */
                role_order_ended(o, role, rank, EXIT_FAILURE, 0, now);
                return;
        }
        if (!count_end(o, role, rank))
                return;
        for (int i = 0; i < rule->n_instances; i++)
                r->instances[i].restarting = r->instances[i].restarting || whole || i == instance;
        if (whole ? r->n_ended < rule->n_ranks : r->instances[instance].living > 0)
                add_decision(o, (struct role_decision){ .verb = ROLE_TERM,
                                                        .role = role,
                                                        .instance = whole ? -1 : instance,
                                                        .rank = -1,
                                                        .other = -1 });
        start_ended_again(o, role);
}

/* ---- inputs of ends ---- */

/* Acts on the end of a rank while the job goes on. */
static void decide_end(struct role_order *o, int role, int rank, int code, int signal, int64_t now)
{
        struct role_decision end;
        bool last = !o->roles[role].instances[find_instance(o, role, rank)].living;
        bool fails = classify_end(o, role, rank, code, last, &end);

        end.signal = signal;
        /* The end of --main comes before a role that waits in vain. */
        if (!fails || end.reason != ROLE_END_FAILED)
                finish_roles(o, now);
        if (o->phase != ORDER_GOING)
                return;
        if (fails) {
                fail_order(o, end, now);
                return;
        }
        tell_ended_helper(o, role, rank, code);
        start_roles(o);
}

void role_order_ended(struct role_order *o, int role, int rank, int code, int signal, int64_t now)
{
        pass_time(o, now);
        if (!count_end(o, role, rank))
                return;
        if (o->phase == ORDER_LINGERING)
                finish_roles(o, now);
        else if (o->phase == ORDER_DRAINING)
                finish_drain(o, now);
        else if (o->phase == ORDER_GOING &&
                 o->roles[role].instances[find_instance(o, role, rank)].restarting)
                start_ended_again(o, role);
        else if (o->phase == ORDER_GOING)
                decide_end(o, role, rank, code, signal, now);
}

void role_order_fail(struct role_order *o, int role, int rank, int code, int64_t now)
{
        pass_time(o, now);
        if (o->phase == ORDER_GOING)
                fail_order(o,
                           (struct role_decision){ .reason = ROLE_END_ORDER,
                                                   .role = role,
                                                   .instance = -1,
                                                   .rank = rank,
                                                   .other = -1,
                                                   .code = code },
                           now);
}

/* ---- the whole ---- */

struct role_order *role_order_create(const struct role_rule *rules, size_t n, int64_t linger_ms)
{
        struct role_order *o = xcalloc(1, sizeof(*o));

        *o = (struct role_order){ .rules = rules, .n = n, .linger_ms = linger_ms };
        o->roles = xcalloc(n, sizeof(*o->roles));
        for (size_t r = 0; r < n; r++) {
                struct order_role *role = &o->roles[r];

                o->has_main = o->has_main || rules[r].is_main;
                role->limit_ms = -1;
                role->ended = xcalloc((size_t)rules[r].n_ranks, sizeof(*role->ended));
                role->instances = xcalloc((size_t)rules[r].n_instances, sizeof(*role->instances));
                for (int rank = 0; rank < rules[r].n_ranks; rank++)
                        role->instances[find_instance(o, (int)r, rank)].living++;
        }
        start_roles(o);
        return o;
}

void role_order_destroy(struct role_order *o)
{
        for (size_t r = 0; r < o->n; r++) {
                free(o->roles[r].ended);
                free(o->roles[r].instances);
        }
        free(o->roles);
        free(o->queue);
        free(o);
}
