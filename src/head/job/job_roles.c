/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out the decisions of role_order (head/model/role_order.h) on roles of a job: which start
 * now, which are told to end, and when the job ends. A failure of a rank goes the way of any job
 * first, which asks job_roles_drain() before all ranks are stopped.
 *
 * A role starts with the orders of its worlds. A world of several roles starts with the last of
 * them; --after holds for all of them (role_conduct_list_after()).
 */
#include "head/job/job_roles.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/job.h"
#include "head/job/role_again.h"
#include "head/job/turns.h"
#include "head/model/role_book.h"
#include "head/model/role_order.h"
#include "head/options/program_options.h"
#include "head/options/role_conduct.h"

/* A role of an attempt. */
struct running_role {
        int first;     /* rank in the job */
        int unstarted; /* ranks */
        bool begun;    /* to be started */
        bool again;    /* ranks of it start again */
        char *awaited; /* names of other roles, as told last; NULL = none */
};

struct job_roles {
        struct cluster *cluster;
        struct attempt *attempt;
        const struct job_config *config;
        const struct job_roles_ops *ops;
        void *ctx;
        const struct job_launch *launch;
        uv_timer_t limit; /* of role_order */
        size_t n;
        struct role_rule *rules;
        struct role_order *order; /* NULL before the launch */
        struct running_role *roles;
        struct role_again *again;
        bool *ordered;                /* by world: its orders are sent */
        size_t allowed;               /* ranks that have failed, and the job goes on */
        int restarts;                 /* within all attempts so far */
        job_restart_rule *may_repeat; /* NULL = the count decides alone */
        bool fails;                   /* job_roles_drain() was asked */
        bool over;                    /* the last decision was taken */
};

static bool order_ranks_again(void *ctx, const struct role_span *s);

struct job_roles *job_roles_create(struct cluster *c, struct attempt *a,
                                   const struct job_config *config, const struct job_roles_ops *ops,
                                   void *ctx)
{
        struct job_roles *r;

        if (!options_count_roles(config->options))
                return NULL;
        r = xcalloc(1, sizeof(*r));
        *r = (struct job_roles){ .cluster = c,
                                 .attempt = a,
                                 .config = config,
                                 .ops = ops,
                                 .ctx = ctx,
                                 .n = options_count_roles(config->options) };
        cluster_init_timer(c, &r->limit, r);
        r->again = role_again_create(c, (uint32_t)config->options->grace_ms, order_ranks_again, r);
        return r;
}

/* Drops the state of an attempt. The count of restarts and the rule stay. */
static void drop_roles(struct job_roles *r)
{
        if (r->order)
                role_order_destroy(r->order);
        r->order = NULL;
        for (size_t i = 0; r->rules && i < r->n; i++) {
                intlist_finish(&r->rules[i].after);
                free(r->roles[i].awaited);
        }
        free(r->rules);
        free(r->roles);
        free(r->ordered);
        r->rules = NULL;
        r->roles = NULL;
        r->ordered = NULL;
        r->allowed = 0;
        r->fails = r->over = false;
}

void job_roles_close(struct job_roles *r)
{
        if (!r)
                return;
        uv_close((uv_handle_t *)&r->limit, NULL);
        role_again_close(r->again);
}

void job_roles_free(struct job_roles *r)
{
        if (!r)
                return;
        drop_roles(r);
        role_again_free(r->again);
        free(r);
}

static const char *find_role_name(const struct job_roles *r, int role)
{
        return options_role(r->config->options, (size_t)role)->name;
}

/* A role has the number of its program. */
static int find_own_role(const struct job_roles *r, int rank)
{
        return r->attempt->plan->ranks[rank].program;
}

/* --- the rules -------------------------------------------------------------------------------- */

/* Fills in the rule of a role from the options; the number of its ranks is set before. Without
 * replicas each rank is an instance, without --max-restarts no ranks start again. */
static void make_rule(const struct job_roles *r, size_t role, struct role_rule *rule)
{
        const struct options *o = r->config->options;
        const struct program_options *p = options_program(o, role);

        role_conduct_list_after(o, role, &rule->after);
        rule->n_instances = p->role.replicas ? p->role.replicas : rule->n_ranks;
        rule->is_main = strv_has(&o->main_roles, p->role.name);
        rule->ends_ok = p->conduct.ends_ok || o->on_failure == FAILURE_CONTINUE;
        rule->drain_ms = p->conduct.drain_ms;
        rule->scope = o->max_restarts ? p->conduct.restart_scope : ROLE_SCOPE_JOB;
        rule->probed = p->conduct.ready.kind != READY_START;
        rule->ready_timeout_ms = MAX(p->conduct.ready.timeout_ms, INT64_C(0)); /* 0 = never here */
        if (r->config->book)
                rule->refers = *role_book_referred(r->config->book, (int)role);
}

/* Makes the roles of the attempt, and decides which start first. */
static void make_roles(struct job_roles *r)
{
        const struct plan *plan = r->attempt->plan;

        drop_roles(r);
        role_again_forget(r->again);
        r->rules = xcalloc(r->n, sizeof(*r->rules));
        r->roles = xcalloc(r->n, sizeof(*r->roles));
        r->ordered = xcalloc(plan->n_worlds, sizeof(*r->ordered));
        for (int i = 0; i < plan->world_size; i++) {
                struct role_rule *rule = &r->rules[plan->ranks[i].program];
                struct running_role *role = &r->roles[plan->ranks[i].program];

                /* Ranks of a role have neighbouring numbers: the first rank and the number of ranks
                 * tell all. */
                role->first = rule->n_ranks ? role->first : i;
                role->unstarted = ++rule->n_ranks;
        }
        for (size_t i = 0; i < r->n; i++)
                make_rule(r, i, &r->rules[i]);
        r->order = role_order_create(r->rules, r->n, r->config->options->linger_ms);
}

/* --- worlds ----------------------------------------------------------------------------------- */

/* Notes that the orders are sent, so the caller has to send them. */
bool job_roles_begin_world(struct job_roles *r, uint32_t world)
{
        const struct plan_world *w;

        if (!r)
                return true;
        w = &r->attempt->plan->worlds[world];
        if (r->ordered[world])
                return false;
        for (int i = w->first; i < w->first + w->size; i++)
                if (!r->roles[r->attempt->plan->ranks[i].program].begun)
                        return false;
        r->ordered[world] = true;
        return true;
}

/* Without roles all worlds begin with the launch. */
bool job_roles_has_begun(const struct job_roles *r, int world)
{
        return !r || r->ordered[world];
}

bool job_roles_have_begun(const struct job_roles *r)
{
        for (size_t i = 0; r && i < r->attempt->plan->n_worlds; i++)
                if (!r->ordered[i])
                        return false;
        return true;
}

/* Whether decisions of role_order count: from the launch to the last decision, while the job runs.
 * When something else stops the job, roles decide nothing more. */
static bool is_order_open(const struct job_roles *r)
{
        return r && r->order && !r->over && r->attempt->state == JOB_RUNNING;
}

bool job_roles_await(const struct job_roles *r, size_t node)
{
        const struct plan_node *p;

        if (!is_order_open(r))
                return false;
        p = &r->attempt->plan->nodes[node];
        for (int i = 0; i < p->n_ranks; i++)
                if (!r->ordered[r->attempt->plan->ranks[p->ranks.v[i]].world])
                        return true;
        return false;
}

/* Keeps job_wait() going while no node runs ranks, but some are still to be ordered. */
bool job_roles_wait(const struct job_roles *r)
{
        return is_order_open(r) && (!job_roles_have_begun(r) || role_again_count_waiting(r->again));
}

size_t job_roles_count_waiting(const struct job_roles *r)
{
        return r ? role_again_count_waiting(r->again) : 0;
}

/* --- sentences -------------------------------------------------------------------------------- */

/* Writes "role infer, rank 1 on gpu007". */
static void name_rank_of_role(const struct job_roles *r, const struct role_decision *d, char *to,
                              size_t size)
{
        int rank = r->roles[d->role].first + d->rank;
        char who[PLAN_RANK_NAME_MAX];

        snprintf(to, size, "%s on %.100s", plan_rank_name(r->attempt->plan, rank, who),
                 r->config->hosts->v[r->attempt->plan->ranks[rank].node].name);
}

/* Writes ", and role router waits for it", or "". */
static void name_waiter(const struct job_roles *r, int role, char *to, size_t size)
{
        *to = '\0';
        for (size_t i = 0; i < r->n; i++)
                if (role_order_waits(r->order, (int)i, role)) {
                        snprintf(to, size, ", and role %s waits for it", find_role_name(r, (int)i));
                        return;
                }
}

/* Writes the text of a ROLE_FAIL: the rank, its end or its silence, and which role needs it. */
static void describe_role_failure(const struct job_roles *r, const struct role_decision *d,
                                  char *to, size_t size)
{
        char who[PLAN_RANK_NAME_MAX + 110], waiter[64];
        const struct format_span limit = format_span((uint64_t)r->rules[d->role].ready_timeout_ms);

        name_rank_of_role(r, d, who, sizeof(who));
        name_waiter(r, d->role, waiter, sizeof(waiter));
        if (d->reason == ROLE_END_LEFT)
                snprintf(to, size, "%s ended with 0, but role %s needs it", who,
                         find_role_name(r, d->other));
        else if (d->reason == ROLE_END_UNREADY && d->signal)
                snprintf(to, size, "%s was killed by %s before it was ready%s", who,
                         outcome_signal_name(d->signal), waiter);
        else if (d->reason == ROLE_END_UNREADY)
                snprintf(to, size, "%s ended before it was ready%s", who, waiter);
        else
                snprintf(to, size, "%s was not ready in %s (--ready-timeout)%s", who, limit.text,
                         waiter);
}

/* --- decisions -------------------------------------------------------------------------------- */

/* Returns the ranks of a role, or of an instance, in the job. */
static struct role_span find_decided_ranks(const struct job_roles *r, const struct role_decision *d)
{
        int first = r->roles[d->role].first, n = r->rules[d->role].n_ranks, from = 0;

        if (d->instance >= 0) {
                from = role_order_first_rank(r->order, d->role, d->instance);
                n = role_order_first_rank(r->order, d->role, d->instance + 1) - from;
        }
        return (struct role_span){ first + from, n };
}

/* A time of its own (--drain) is counted by role_order, which decides again at the end. Without one
 * KILL follows after the grace time. */
static void terminate_role(struct job_roles *r, const struct role_decision *d)
{
        const struct role_span s = find_decided_ranks(r, d);
        const struct ranks_signal m = {
                .signo = SIGTERM, .first = (uint32_t)s.first, .n = (uint32_t)s.size, .ends = true
        };

        if (d->time_ms)
                cluster_signal_ranks(r->cluster, &m);
        else
                role_again_stop(r->again, &s);
}

/* The ranks have run in this attempt, and have all ended. */
static void start_role_again(struct job_roles *r, const struct role_decision *d)
{
        const struct role_span s = find_decided_ranks(r, d);

        r->roles[d->role].unstarted += s.size;
        r->roles[d->role].again = true;
        role_again_start(r->again, d->role, &s);
}

/* Warns of a helper that has ended, failed or not, while the job goes on. */
static void tell_ended_role(struct job_roles *r, const struct role_decision *d)
{
        char who[PLAN_RANK_NAME_MAX + 110];
        struct diags diags = DIAGS_INIT;
        struct diag *di;

        name_rank_of_role(r, d, who, sizeof(who));
        if (d->code)
                di = diag_warn(&diags, HN_ROLE_ENDED, "%s ended with code %d; no role needs it",
                               who, d->code);
        else
                di = diag_warn(&diags, HN_ROLE_ENDED, "role %s has ended; no role needs it",
                               find_role_name(r, d->role));
        diag_help(di, "--ends ok expects it: then nothing is told");
        if (r->config->say)
                r->config->say(r->config->say_ctx, &diags);
        diags_finish(&diags);
}

/* Makes a rule of roles the cause of the failure, unless the rank itself has become the cause. */
static void fail_by_role(struct job_roles *r, const struct role_decision *d)
{
        struct cause c = attempt_cause(r->attempt, CAUSE_ROLE);

        if (outcome_failed(&r->attempt->outcome))
                return; /* by the rank that ended so */
        c.rank = r->roles[d->role].first + d->rank;
        c.node = r->attempt->plan->ranks[c.rank].node;
        c.code = d->code;
        c.why = d->reason;
        describe_role_failure(r, d, c.text, sizeof(c.text));
        attempt_fail(r->attempt, &c);
}

/* --- waits ------------------------------------------------------------------------------------ */

/* Returns the names of the roles that @role waits for, "infer, trainer"; NULL = none. malloc'ed. */
static char *list_awaited(const struct job_roles *r, int role)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; !r->roles[role].begun && i < r->n; i++)
                if (role_order_waits(r->order, role, (int)i))
                        buf_printf(&b, "%s%s", buf_len(&b) ? ", " : "", find_role_name(r, (int)i));
        return buf_len(&b) ? buf_steal(&b) : NULL;
}

json_t *job_roles_describe_waits(const struct job_roles *r)
{
        json_t *list = NULL;

        for (size_t i = 0; is_order_open(r) && i < r->n; i++) {
                const char *name = find_role_name(r, (int)i), *awaited = r->roles[i].awaited;

                if (!awaited)
                        continue;
                list = list ? list : json_array();
                json_array_append_new(
                        list, json_pack("{s:s, s:o}", "role", name, "text",
                                        json_sprintf("role %s waits for %s", name, awaited)));
        }
        return list;
}

/* Emits what a role waits for, when that has changed. */
static void tell_awaited(struct job_roles *r, int role)
{
        struct running_role *own = &r->roles[role];
        CLEANUP(free_textp) char *awaited = list_awaited(r, role), *text = NULL;
        const char *name = find_role_name(r, role);
        bool same = awaited && own->awaited && !strcmp(awaited, own->awaited);
        bool counts = awaited && !own->awaited && !r->attempt->number;

        if (same || (!awaited && !own->awaited))
                return;
        text = awaited ? xasprintf("role %s waits for %s", name, awaited)
                       : xasprintf("role %s: %s %s ready", name, own->awaited,
                                   strchr(own->awaited, ',') ? "are" : "is");
        events_emit(r->cluster->events,
                    (struct event){ .kind = awaited ? EVENT_ROLE_WAITS : EVENT_ROLE_STARTS,
                                    .node = -1,
                                    .rank = -1,
                                    .count = counts ? r->rules[role].n_ranks : 0,
                                    .text = text,
                                    .brief = name });
        free(own->awaited);
        own->awaited = STEAL(&awaited);
}

static void act_on_limit(uv_timer_t *t);

/* Carries out what was decided. Inputs may come from within, and have their decisions carried out
 * there. */
static void carry_out(struct job_roles *r)
{
        struct role_decision d;
        int64_t limit;
        bool starts = false;

        /* The queue is emptied in any case. A decision may close the order, and later decisions
         * have no effect. */
        while (role_order_next(r->order, &d)) {
                if (!is_order_open(r))
                        continue;
                switch (d.verb) {
                case ROLE_START:
                        if (r->roles[d.role].begun) {
                                start_role_again(r, &d);
                                break;
                        }
                        r->roles[d.role].begun = true;
                        starts = true;
                        break;
                case ROLE_TERM:
                        terminate_role(r, &d);
                        break;
                case ROLE_TELL:
                        tell_ended_role(r, &d);
                        break;
                case ROLE_FAIL:
                        fail_by_role(r, &d);
                        break;
                case ROLE_END:
                        r->over = true;
                        if (d.reason == ROLE_END_DONE)
                                r->ops->finish(r->ctx, "the roles of --main have ended");
                        else
                                /* job_failed() asks job_roles_drain() again, which declines now,
                                 * and stops all ranks. */
                                r->attempt->failed(r->attempt->ctx, true);
                        break;
                }
        }
        if (role_order_lingers(r->order))
                outcome_decide(&r->attempt->outcome); /* no failure counts any more */
        /* Once for all roles starting now: a world of several roles begins when each of them has
         * begun. */
        if (starts && is_order_open(r))
                r->ops->order_worlds(r->ctx, r->launch);
        for (size_t i = 0; is_order_open(r) && i < r->n; i++)
                tell_awaited(r, (int)i);
        limit = is_order_open(r) ? role_order_deadline(r->order) : -1;
        if (limit < 0)
                uv_timer_stop(&r->limit);
        else
                uv_timer_start(&r->limit, act_on_limit,
                               (uint64_t)MAX(limit - clock_ms(), INT64_C(0)), 0);
}

static void act_on_limit(uv_timer_t *t)
{
        struct job_roles *r = t->data;

        role_order_tick(r->order, clock_ms());
        carry_out(r);
}

/* The first roles are ordered from inside, by ops.order_worlds(). */
bool job_roles_launch(struct job_roles *r, const struct job_launch *l)
{
        if (!r)
                return false;
        r->launch = l;
        make_roles(r);
        carry_out(r);
        return true;
}

/* --- inputs ----------------------------------------------------------------------------------- */

/* A first start is told by tell_awaited(), and only if the role had to wait. */
static void tell_started_again(const struct job_roles *r, int role)
{
        const char *name = find_role_name(r, role);
        CLEANUP(free_textp) char *text = xasprintf("role %s: runs again", name);

        events_emit(r->cluster->events, (struct event){ .kind = EVENT_ROLE_STARTS,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .text = text,
                                                        .brief = name });
}

/* A role has started with the last of its ranks, or of the ranks of a restart. */
void job_roles_started(struct job_roles *r, int rank)
{
        int role = r ? find_own_role(r, rank) : -1;

        if (!r || --r->roles[role].unstarted)
                return;
        if (r->roles[role].again)
                tell_started_again(r, role);
        r->roles[role].again = false;
        role_order_started(r->order, role, clock_ms());
        carry_out(r);
}

void job_roles_ready(struct job_roles *r, int rank, int instance)
{
        role_order_ready(r->order, find_own_role(r, rank), instance, clock_ms());
        carry_out(r);
}

bool job_roles_allow(struct job_roles *r, int rank, int code)
{
        const struct options *o = r ? r->config->options : NULL;
        int role = r ? find_own_role(r, rank) : -1;

        /* With --ends ok the code is no failure, but maybe an end before being ready: ROLE_FAIL
         * tells it. With --on-failure continue the code counts, although the job goes on. */
        if (!code || !is_order_open(r) ||
            (!options_program(o, (size_t)role)->conduct.ends_ok &&
             (o->on_failure == FAILURE_CONTINUE ||
              role_order_is_failure(r->order, role, rank - r->roles[role].first, code))))
                return false;
        r->allowed++;
        return true;
}

size_t job_roles_allowed(const struct job_roles *r)
{
        return r ? r->allowed : 0;
}

/* The decision may order other ranks, or end the job, from inside. */
void job_roles_ended(struct job_roles *r, int rank, int code, int signal)
{
        int role = r ? find_own_role(r, rank) : -1;

        if (!r)
                return;
        role_order_ended(r->order, role, rank - r->roles[role].first, code, signal, clock_ms());
        carry_out(r);
}

/* Counts ranks of lost nodes, and ranks that were refused, as ended, so that neither drain nor
 * linger waits for them. */
static void end_lost_ranks(struct job_roles *r)
{
        const struct attempt *a = r->attempt;

        for (int i = 0; i < a->plan->world_size; i++) {
                int role = find_own_role(r, i);

                if (r->cluster->nodes[a->plan->ranks[i].node].state == NODE_FAILED ||
                    turns_is_refused(a->turns, i))
                        role_order_ended(r->order, role, i - r->roles[role].first, EXIT_FAILURE, 0,
                                         clock_ms());
        }
        carry_out(r);
}

/* Otherwise the loss is the failure that ends the job, and no end of ranks is waited for. */
void job_roles_lost(struct job_roles *r)
{
        if (is_order_open(r) && (r->fails || role_order_lingers(r->order)))
                end_lost_ranks(r);
}

/* An agent that cannot start a rank kills the others of the node, and waits for orders that were
 * announced: STOP comes behind those under way. */
void job_roles_refused(struct job_roles *r, struct node *n, const struct refused *m)
{
        if (r && n->state == NODE_RUNNING && (m->rank != MSG_NO_RANK || m->why == REFUSED_PMIX)) {
                number_encode(&n->out, MSG_STOP, 0);
                node_flush(n);
        }
        job_roles_lost(r);
}

/* --- restarts --------------------------------------------------------------------------------- */

/* The pause is over. Each world with ranks in the span has one restart more; worlds of a span are
 * neighbours. The ranks do not start if the job has been stopped meanwhile, or leaves a host: then
 * they start with the next attempt. */
static bool order_ranks_again(void *ctx, const struct role_span *s)
{
        struct job_roles *r = ctx;
        const struct plan *plan = r->attempt->plan;

        if (!is_order_open(r) || r->ops->is_leaving(r->ctx))
                return false;
        for (int i = s->first; i < s->first + s->size; i++)
                if (i == s->first || plan->ranks[i].world != plan->ranks[i - 1].world)
                        role_again_count(r->again, (uint32_t)plan->ranks[i].world);
        r->ops->order_again(r->ctx, r->launch, s);
        return true;
}

int job_roles_restarts(const struct job_roles *r, uint32_t world)
{
        return r ? role_again_of_world(r->again, world) : 0;
}

int job_roles_count_restarts(const struct job_roles *r)
{
        return r ? r->restarts : 0;
}

void job_roles_use_rule(struct job_roles *r, job_restart_rule *may_repeat)
{
        if (r)
                r->may_repeat = may_repeat;
}

bool job_roles_may_repeat(const struct job_roles *r, const struct outcome *o, bool healthy)
{
        return !r->may_repeat || r->may_repeat(r->config->say_ctx, o, healthy);
}

bool job_roles_start_again(const struct job_roles *r, int rank)
{
        return r && r->rules[find_own_role(r, rank)].scope != ROLE_SCOPE_JOB;
}

bool job_roles_is_ending(const struct job_roles *r, int rank)
{
        int role = r ? find_own_role(r, rank) : -1;

        return r && r->order && role_order_restarts(r->order, role, rank - r->roles[role].first);
}

bool job_roles_can_restart(const struct job_roles *r, int rank, int code)
{
        int role = r ? find_own_role(r, rank) : -1;

        return is_order_open(r) && !r->fails &&
               role_order_may_restart(r->order, role, rank - r->roles[role].first, code);
}

/* The ranks of a role are divided evenly between its instances, as in role_order.h. */
struct role_span job_roles_find_scope(const struct job_roles *r, int rank)
{
        int role = find_own_role(r, rank), own = rank - r->roles[role].first;
        const struct role_rule *rule = &r->rules[role];
        const struct role_decision d = {
                .role = role,
                .instance = rule->scope == ROLE_SCOPE_ROLE
                                    ? -1
                                    : (int)((int64_t)own * rule->n_instances / rule->n_ranks)
        };

        return find_decided_ranks(r, &d);
}

bool job_roles_has_ended(const struct job_roles *r, int rank)
{
        int role = find_own_role(r, rank);

        return role_order_has_ended(r->order, role, rank - r->roles[role].first);
}

/* Counts the restart with the decision: the ranks start later, when the last of the scope has
 * ended. */
void job_roles_restart(struct job_roles *r, int rank)
{
        int role = find_own_role(r, rank);

        r->restarts++;
        role_order_restart(r->order, role, rank - r->roles[role].first, clock_ms());
        carry_out(r);
}

/* Roles without --drain are not stopped yet. If no role has it, ROLE_END comes from inside, and the
 * job is being stopped when this returns. */
bool job_roles_drain(struct job_roles *r, const struct cause *c)
{
        bool of_rank = r && c->rank >= 0;
        int role = of_rank ? find_own_role(r, c->rank) : -1;

        /* Orders have a time of their own, --grace. */
        if (!is_order_open(r) || c->kind == CAUSE_ORDER || c->kind == CAUSE_STDOUT)
                return false;
        role_order_fail(r->order, role, of_rank ? c->rank - r->roles[role].first : -1, c->code,
                        clock_ms());
        r->fails = true;
        end_lost_ranks(r);
        return true;
}
