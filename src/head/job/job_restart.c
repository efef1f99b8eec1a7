/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another attempt keeps the agents and their links; everything else of the last attempt goes
 * (decision D20). The ranks of a lost node move to a spare host, and ranks keep their numbers.
 * Without one the node is left out where --nodes MIN:MAX allows it, and the other ranks close up.
 *
 * The order matters: orphans of the tree are connected again first, and need no replacement; lost
 * nodes are replaced in the plan, or come back within --node-timeout; the attempt is forgotten;
 * then comes the back-off time, in which ranks that may live on lost nodes end, too. A node lost
 * during this time is replaced as well. By then the cause of the last attempt is gone, so a node
 * without a replacement becomes the new cause.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_private.h"
#include "head/nodes/program_link.h"
#include "head/options/program_options.h"
#include "wire/env/gpu_list.h"

enum {
        HEALTHY_MS = 60000, /* a longer attempt ends a crash loop */
        BACKOFF_MS = 1000,  /* before the second restart in a row; then doubled */
        BACKOFF_MAX_MS = 60000,
        RETURN_MS = 1000,  /* between two tries to reach a lost node */
        MEMORY_MS = 60000, /* in which GPUs free the memory of the attempt */
        MEMORY_LOOK_MS = 1000,
};

/* Whether the node has all GPUs of the list, also hidden GPUs of HELLO. */
static bool has_devices(const struct node *n, const struct intlist *devices)
{
        for (size_t i = 0; i < devices->n; i++) {
                bool found = devices->v[i] >= GPU_BY_PLACE; /* a word of the user */

                for (uint32_t g = 0; g < n->hello.n_gpus && !found; g++)
                        found = n->hello.gpus[g].index == (uint32_t)devices->v[i];
                for (uint32_t g = 0; g < n->hello.n_hidden && !found; g++)
                        found = n->hello.hidden[g].index == (uint32_t)devices->v[i];
                if (!found)
                        return false;
        }
        return true;
}

/* Whether the plan has ranks on a lost node. */
static bool is_missing(const struct job *j, const struct plan *plan, size_t node)
{
        return plan->nodes[node].n_ranks && j->cluster->nodes[node].state == NODE_FAILED;
}

/* Moves the ranks of a lost node to a ready one without ranks, with @same of the same domain.
 * Returns the node, or n_nodes: there is none. */
static size_t move_ranks(struct job *j, struct plan *plan, size_t lost, bool same)
{
        const struct cluster *c = j->cluster;
        size_t i = 0;

        while (i < c->n_nodes &&
               (c->nodes[i].state != NODE_READY || plan->nodes[i].n_ranks ||
                (same && !host_shares_domain(c->nodes[i].host, c->nodes[lost].host)) ||
                !has_devices(&c->nodes[i], &plan->nodes[lost].gpus) || !plan_move(plan, lost, i)))
                i++;
        return i;
}

/* Moves the ranks of a lost node to a spare host. False: there is none. */
static bool move_to_spare(struct job *j, struct plan *plan, size_t lost)
{
        const struct cluster *c = j->cluster;
        size_t i = move_ranks(j, plan, lost, true);

        if (i == c->n_nodes)
                i = move_ranks(j, plan, lost, false);
        if (i == c->n_nodes)
                return false;
        log_line(LOG_WARN, "%s takes the place of %s", c->nodes[i].host->name,
                 c->nodes[lost].host->name);
        cluster_emit(c, EVENT_NODE_REPLACED, (int)lost, -1, 0, c->nodes[i].host->name);
        return true;
}

/* Only ends the turn of the loop: sleep_restart() sees that the timer is inactive. */
static void on_backoff_over(uv_timer_t *t UNUSED)
{
}

/* Sleeps until a failure happens beside the first @happened, or, with @connects, until no node is
 * being connected. */
static void sleep_restart(struct job *j, uint64_t ms, size_t happened, bool connects)
{
        uv_timer_t *backoff = &j->history.backoff;

        uv_timer_start(backoff, on_backoff_over, ms, 0);
        /* When all nodes are lost, nothing else may keep uv_run() from returning at once. */
        uv_ref((uv_handle_t *)backoff);
        while (uv_is_active((uv_handle_t *)backoff) && (!connects || j->cluster->unresolved) &&
               outcome_count(&j->attempt->outcome) == happened)
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(backoff);
        uv_unref((uv_handle_t *)backoff);
}

/* Clears what does not count. */
static bool is_memory_held(const struct job *j, const struct intlist *retired,
                           struct node_facts *facts)
{
        bool held = false;

        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                if (j->cluster->nodes[i].state == NODE_FAILED || intlist_has(retired, (int)i))
                        *facts[i].held = '\0';
                held |= *facts[i].held;
        }
        return held;
}

/* Warns of each node once, then asks all nodes again in each turn. */
void job_await_memory(struct job *j, const struct intlist *retired, struct node_facts *facts)
{
        int64_t until = clock_ms() + MEMORY_MS;

        if (!is_memory_held(j, retired, facts))
                return;
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (*facts[i].held)
                        log_line(LOG_WARN,
                                 "%s: memory of the ended attempt is not free: %s; waiting at "
                                 "most %s",
                                 j->config->hosts->v[i].name, facts[i].held,
                                 format_span(MEMORY_MS).text);
        while (is_memory_held(j, retired, facts) && clock_ms() < until && !j->orders.ended_by) {
                sleep_restart(j, MEMORY_LOOK_MS, outcome_count(&j->attempt->outcome), false);
                job_ask_facts(j, "", facts);
        }
}

/* Connects all missing nodes once more. Returns how many are missing still. */
static size_t try_missing(struct job *j, const struct plan *plan, int64_t until, size_t happened)
{
        size_t missing = 0;

        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (is_missing(j, plan, i)) {
                        job_push_forget(j->push, i);
                        world_endpoints_forget(j->endpoints, i);
                        cluster_reconnect_node(j->cluster, &j->cluster->nodes[i]);
                }
        sleep_restart(j, (uint64_t)MAX(until - clock_ms(), INT64_C(1)), happened, true);
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (n->state == NODE_CONNECTING || n->state == NODE_GREETING)
                        node_break(n, LINK_TIMED_OUT, "it did not come back in time");
                missing += is_missing(j, plan, i);
        }
        return missing;
}

static bool are_spares_wanted(const struct job *j)
{
        const struct hosts *h = j->config->hosts;

        for (size_t i = 0; i < h->n; i++)
                if (h->v[i].spare)
                        return true;
        return h->aside || j->config->options->spares;
}

/* Whether each missing node has lost its hold, and nothing else. */
static bool is_hold_missing(const struct job *j, const struct plan *plan)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (is_missing(j, plan, i) && j->cluster->nodes[i].failure->cause != LINK_HOLD)
                        return false;
        return true;
}

static void tell_missing(const struct job *j, const struct plan *plan, size_t missing)
{
        struct format_span time = format_span((uint64_t)j->config->options->node_timeout_ms);
        const char *s = missing == 1 ? "" : "s";

        if (is_hold_missing(j, plan))
                log_line(LOG_WARN, "connecting to %zu node%s without the hold", missing, s);
        else if (!are_spares_wanted(j))
                log_line(LOG_WARN, "waiting %s for the return of %zu lost node%s", time.text,
                         missing, s);
        else
                log_line(LOG_WARN,
                         "no spare host can take the place of %zu lost node%s: waiting %s for %s",
                         missing, s, time.text, missing == 1 ? "its return" : "their return");
}

/* Waits --node-timeout for lost nodes that no spare host can replace. */
static bool await_missing(struct job *j, const struct plan *plan, size_t missing)
{
        const struct options *o = j->config->options;
        size_t happened = outcome_count(&j->attempt->outcome);
        int64_t until = clock_ms() + o->node_timeout_ms;

        tell_missing(j, plan, missing);
        for (;;) {
                missing = try_missing(j, plan, until, happened);
                if (!missing || clock_ms() + RETURN_MS >= until ||
                    outcome_count(&j->attempt->outcome) != happened)
                        return !missing;
                sleep_restart(j, RETURN_MS, happened, false);
        }
}

/* A node that dials in, or whose agent calls, comes back by itself or not at all. */
static bool may_connect_again(const struct job *j)
{
        return !j->config->dial_in && !program_link_calls(j->config->options->via);
}

/* Gives up hosts that lack GPUs of the ranks that they are to have. */
static void refuse_unequal(struct job *j, const struct plan *plan, const bool *stood_in)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (!stood_in[i] || n->state != NODE_READY || has_devices(n, &plan->nodes[i].gpus))
                        continue;
                node_break(n, LINK_OTHER, "it lacks GPUs of the host in whose place it is");
                n->refusal = NODE_RETIRED;
        }
}

/* Connects hosts that stand by unconnected in place of lost nodes, until one can be reached for
 * each or none is left. */
static void let_stand_in(struct job *j, const struct plan *plan)
{
        size_t happened = outcome_count(&j->attempt->outcome), n = 1;
        bool *stood_in = xcalloc(j->cluster->n_nodes, sizeof(*stood_in)), any = false;

        while (n && j->stand_in && outcome_count(&j->attempt->outcome) == happened) {
                n = 0;
                for (size_t i = 0; i < j->cluster->n_nodes; i++)
                        if (is_missing(j, plan, i) && j->stand_in(j->config->say_ctx, i)) {
                                job_connect_anew(j, i);
                                stood_in[i] = true;
                                n++;
                        }
                any |= n > 0;
                while (n && j->cluster->unresolved &&
                       outcome_count(&j->attempt->outcome) == happened)
                        uv_run(&j->loop, UV_RUN_ONCE);
                refuse_unequal(j, plan, stood_in);
        }
        if (any)
                job_tell_logins(j);
        free(stood_in);
}

/* Takes @missing nodes out of the plan. False: fewer than --nodes MIN:MAX allows would be left. */
static bool go_on_smaller(struct job *j, struct plan *plan, size_t missing)
{
        size_t least = (size_t)options_min_nodes(j->config->options), *left_out, n = 0;
        char *names, *text;

        if (!least || (size_t)plan->num_nodes < missing + least)
                return false;
        left_out = xcalloc(missing, sizeof(*left_out));
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (is_missing(j, plan, i)) {
                        left_out[n++] = i;
                        plan_leave_out(plan, i);
                }
        names = hosts_fold(j->config->hosts, left_out, n);
        log_line(LOG_WARN, "%sgoing on without %s, with %d rank%s on %d node%s",
                 are_spares_wanted(j) ? "no spare host is left: " : "", names, plan->world_size,
                 plan->world_size == 1 ? "" : "s", plan->num_nodes,
                 plan->num_nodes == 1 ? "" : "s");
        text = xasprintf("without %s", names);
        events_emit(j->config->events, (struct event){ .kind = EVENT_RUN_SHRUNK,
                                                       .node = -1,
                                                       .rank = -1,
                                                       .value = plan->world_size,
                                                       .count = plan->num_nodes,
                                                       .text = text });
        free(text);
        free(names);
        free(left_out);
        return true;
}

static void tell_not_again(const struct job *j, const char *host)
{
        if (are_spares_wanted(j))
                log_line(LOG_WARN,
                         "no spare host can take the place of %s: the job is not started again",
                         host);
        else
                log_line(LOG_WARN, "the job is not started again without %s", host);
}

/* Gives lost nodes' ranks to spare hosts, waits for lost nodes, or leaves them out.
 * JOB_NOT_AGAIN: an order to end came meanwhile. */
static enum job_again replace_lost_nodes(struct job *j, struct plan *plan)
{
        size_t missing = 0, retired = 0, happened = outcome_count(&j->attempt->outcome);

        for (size_t lost = 0; lost < j->cluster->n_nodes; lost++)
                if (is_missing(j, plan, lost))
                        move_to_spare(j, plan, lost);
        let_stand_in(j, plan);
        for (size_t lost = 0; lost < j->cluster->n_nodes; lost++)
                if (is_missing(j, plan, lost)) {
                        missing++;
                        retired += j->cluster->nodes[lost].refusal == NODE_RETIRED;
                }
        if (missing && !retired && may_connect_again(j) && await_missing(j, plan, missing))
                missing = 0;
        if (outcome_count(&j->attempt->outcome) != happened)
                return JOB_NOT_AGAIN;
        if (!missing || go_on_smaller(j, plan, missing))
                return JOB_AGAIN;
        for (size_t lost = 0; lost < j->cluster->n_nodes; lost++)
                if (is_missing(j, plan, lost))
                        tell_not_again(j, j->cluster->nodes[lost].host->name);
        return JOB_TOO_FEW_NODES;
}

/* Connects orphans of the tree again, and nodes that dial in. False: an order to end came
 * meanwhile, noticed by the count, because the cause of the last attempt stays. */
static bool rejoin_nodes(struct job *j)
{
        const struct outcome *o = &j->attempt->outcome;
        size_t happened = outcome_count(o), n;

        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (cluster_can_return(j->cluster, &j->cluster->nodes[i])) {
                        job_push_forget(j->push, i);
                        world_endpoints_forget(j->endpoints, i);
                }
        n = cluster_reconnect(j->cluster);
        if (!n)
                return true;
        if (j->config->dial_in)
                log_line(LOG_WARN, "waiting for %zu lost node%s to dial in again", n,
                         n == 1 ? "" : "s");
        else
                log_line(LOG_WARN, "%zu node%s behind a lost one %s connected directly now", n,
                         n == 1 ? "" : "s", n == 1 ? "is" : "are");
        while (j->cluster->unresolved && outcome_count(o) == happened)
                uv_run(&j->loop, UV_RUN_ONCE);
        job_tell_logins(j);
        return outcome_count(o) == happened;
}

/* Drops everything that belongs to the ended attempt: outcome, printer, store, turns and dumps.
 * Nodes become ready again. */
static void forget_attempt(struct job *j)
{
        uv_timer_stop(&j->timers.stop);
        job_drain_forget(j->orders.drain);
        j->orders.held = false;
        j->told.alone = 0;
        outcome_finish(&j->attempt->outcome);
        j->history.lost_bytes = job_lost_bytes(j);
        attempt_drop_parts(j->attempt);
        readiness_destroy(j->readiness);
        j->readiness = NULL;
        attempt_step(j->attempt, JOB_EV_AGAIN);
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                node_again(&j->cluster->nodes[i]);
}

/* A node lost meanwhile is the better cause, with the reason of its link; of several the last. */
void job_unreachable(struct job *j, const char *text)
{
        struct cause c = { .kind = CAUSE_REFUSED, .rank = -1, .node = (int)job_endpoint(j)->first };

        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (j->attempt->plan->nodes[i].n_ranks &&
                    j->cluster->nodes[i].state == NODE_FAILED) {
                        const struct link_failure *why = j->cluster->nodes[i].failure;

                        c.kind = CAUSE_NODE;
                        c.node = why->cause == LINK_HOLD ? -1 : (int)i;
                        text = why->fact;
                }
        c.at_ns = clock_ns();
        snprintf(c.text, sizeof(c.text), "%s", text);
        outcome_happened(&j->attempt->outcome, &c);
}

/* Returns the pause before the next attempt. The first crash is followed at once; the pause doubles
 * with each further crash soon after a start. */
static uint64_t next_backoff_ms(struct job *j)
{
        struct job_history *h = &j->history;
        uint64_t ms;

        if (attempt_age_ms(j->attempt) >= HEALTHY_MS) {
                h->crashes = 0;
                return 0;
        }
        ms = h->crashes ? (uint64_t)BACKOFF_MS << MIN(h->crashes - 1, 16) : 0;
        h->crashes++;
        return MIN(ms, (uint64_t)BACKOFF_MAX_MS);
}

/* Nodes whose agents have been told to end are not used again. */
static void drop_leaving(struct job *j)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (!n->signals.leaves)
                        continue;
                node_again(n);
                node_break(n, LINK_ENDED, "its agent was ended");
        }
}

/* A node lost before keeps its own failure. */
static void retire_nodes(struct job *j, const struct intlist *retired)
{
        for (size_t i = 0; i < retired->n; i++) {
                struct node *n = &j->cluster->nodes[retired->v[i]];

                if (n->state != NODE_FAILED) {
                        node_again(n);
                        node_break(n, LINK_ENDED, "its host was put out");
                }
                n->refusal = NODE_RETIRED;
        }
}

/* No rank lives twice. */
static uint64_t ms_until_dead(const struct job *j)
{
        return (uint64_t)MAX((j->history.dead_ns - clock_ns()) / 1000000, INT64_C(0));
}

/* Writes the line about the next attempt, whose number is set. @pause: "waiting 2.0s before ", or
 * "".
 */
static void describe_next(const struct job *j, const struct job_next *next, const char *pause,
                          const char *why, char *to, size_t size)
{
        if (next)
                snprintf(to, size, "%sattempt %d: %s: %s (%s)", pause, j->attempt->number + 1,
                         next->verb, next->reason, why);
        else
                snprintf(to, size, "%srestart %d of %d: %s", pause,
                         j->attempt->number + job_role_restarts(j),
                         j->config->options->max_restarts, why);
}

/* @next NULL: by the number of --max-restarts. Returns as job_restart_as(). */
static enum job_again begin_again(struct job *j, struct plan *plan, const struct job_next *next)
{
        const struct cause *c = &j->attempt->outcome.cause;
        char why[640], host[256] = "", text[1400], pause[64] = "", time[32];
        enum job_again r;
        uint64_t ms;

        /* Another host may take the place of the node, or one that dials in another name. */
        job_sentence(j, c, why, sizeof(why));
        if (c->node >= 0)
                snprintf(host, sizeof(host), "%s", j->config->hosts->v[c->node].name);
        ms = c->kind == CAUSE_DRAIN ? 0 : next_backoff_ms(j);
        job_status_settle(j->status);
        drop_leaving(j);
        if (next)
                retire_nodes(j, next->retired);
        r = rejoin_nodes(j) ? replace_lost_nodes(j, plan) : JOB_NOT_AGAIN;
        if (r != JOB_AGAIN)
                return r;
        ms = MAX(ms, ms_until_dead(j));
        j->attempt->number++;
        strv_pushf(&j->history.ends, "attempt %d ended: %s", j->attempt->number, why);
        format_duration(time, sizeof(time), (int64_t)ms * 1000);
        if (ms)
                snprintf(pause, sizeof(pause), "waiting %s before ", time);
        describe_next(j, next, pause, why, text, sizeof(text));
        log_line(LOG_WARN, "%s", text);
        events_emit(j->config->events, (struct event){ .kind = EVENT_RESTART,
                                                       .node = c->node,
                                                       .rank = c->rank,
                                                       .value = j->attempt->number,
                                                       .count = (int64_t)job_spares(j),
                                                       .pause_ms = (int64_t)ms,
                                                       .host = c->node >= 0 ? host : NULL,
                                                       .text = why });
        forget_attempt(j);
        if (ms)
                sleep_restart(j, ms, 0, false);
        if (outcome_failed(&j->attempt->outcome) || !rejoin_nodes(j))
                return JOB_NOT_AGAIN;
        r = replace_lost_nodes(j, plan);
        if (r == JOB_TOO_FEW_NODES)
                job_unreachable(j, "a node was lost between two attempts");
        return r;
}

/* Returns how many restarts --max-restarts counts. */
static int count_restarts(const struct job *j)
{
        return j->attempt->number - j->history.extra + job_role_restarts(j);
}

/* Failures of ranks and nodes allow another attempt; orders, limits of time and hn_abort() do not.
 * A decision (@next) was made by rules of its own: only an order or the count forbids it. */
bool job_may_restart(const struct job *j, const struct job_next *next)
{
        const struct cause *c = &j->attempt->outcome.cause;
        bool of_rank = outcome_is_workers(&j->attempt->outcome) && c->kind != CAUSE_NONE &&
                       c->kind != CAUSE_ABORT;
        bool of_job = of_rank || c->kind == CAUSE_NODE || c->kind == CAUSE_PAUSE ||
                      (c->kind == CAUSE_HANG && j->config->options->on_hang == HANG_RESTART);
        bool left = count_restarts(j) < j->config->options->max_restarts;

        return j->attempt->state != JOB_ENDED && !j->orders.ended_by &&
               (next ? next->extra || left : of_job && left);
}

bool job_restart(struct job *j, struct plan *plan)
{
        return job_may_restart(j, NULL) && begin_again(j, plan, NULL) == JOB_AGAIN;
}

enum job_again job_restart_as(struct job *j, struct plan *plan, const struct job_next *next)
{
        if (!job_may_restart(j, next))
                return JOB_NOT_AGAIN;
        j->history.extra += next->extra;
        return begin_again(j, plan, next);
}

/* --- restarts within an attempt (--restart-scope) --------------------------------------------- */

void job_use_restart_rule(struct job *j, job_restart_rule *may_repeat)
{
        job_roles_use_rule(j->roles, may_repeat);
}

int job_role_restarts(const struct job *j)
{
        return job_roles_count_restarts(j->roles);
}

/* Whether the failure @o of a rank may lead to a restart within the attempt: the job runs, and
 * nothing else is about to end it. */
static bool is_repeat_allowed(const struct job *j, const struct outcome *o)
{
        const struct options *opt = j->config->options;

        return j->attempt->state == JOB_RUNNING && !j->orders.ended_by && !j->orders.held &&
               !outcome_failed(&j->attempt->outcome) && !job_drain_any(j->orders.drain) &&
               count_restarts(j) < opt->max_restarts &&
               job_roles_may_repeat(j->roles, o, o->cause.after_ms >= HEALTHY_MS);
}

static void tell_restart(struct job *j, const struct cause *c, const char *why)
{
        const char *role =
                options_role(j->config->options, (size_t)j->attempt->plan->ranks[c->rank].program)
                        ->name;

        if (j->config->options->restart.automatic)
                log_line(LOG_WARN, "role %s starts again: %s", role, why);
        else
                log_line(LOG_WARN, "restart %d of %d, of role %s: %s", count_restarts(j),
                         j->config->options->max_restarts, role, why);
        events_emit(j->config->events, (struct event){ .kind = EVENT_ROLE_RESTART,
                                                       .node = c->node,
                                                       .rank = c->rank,
                                                       .value = job_role_restarts(j),
                                                       .host = j->config->hosts->v[c->node].name,
                                                       .text = why,
                                                       .brief = role });
}

/* Forgets what the attempt knows of the ranks that are to start again. */
static void forget_ranks(struct job *j, int failed)
{
        const struct role_span s = job_roles_find_scope(j->roles, failed);

        for (int i = s.first; i < s.first + s.size; i++) {
                outcome_forget(&j->attempt->outcome, i, job_roles_has_ended(j->roles, i));
                job_drain_rank_again(j->orders.drain, i);
        }
}

/* Starts the ranks again if that is allowed after the failure of a rank. */
static bool restart_scope(struct job *j, const struct cause *c, int status)
{
        struct outcome o = OUTCOME_INIT;
        CLEANUP(free_textp) char *words = NULL;
        struct burst told;
        char why[640], who[PLAN_RANK_NAME_MAX];
        bool again;

        words = attempt_newest_stderr(j->attempt, c->rank, &told);
        /* An outcome of its own judges this end alone: the outcome of the attempt has no failure
         * yet. */
        outcome_exited(&o, c, status, false, false, words);
        job_sentence(j, &o.cause, why, sizeof(why));
        if (o.cause.kind == CAUSE_NONE)
                snprintf(why, sizeof(why), "%s ended with 0, but others need it",
                         plan_rank_name(j->attempt->plan, c->rank, who));
        again = is_repeat_allowed(j, &o);
        outcome_finish(&o);
        if (!again)
                return false;
        readiness_ended(j->readiness, c->rank);
        forget_ranks(j, c->rank);
        job_roles_restart(j->roles, c->rank);
        tell_restart(j, c, why);
        return true;
}

/* A rank told to end for the restart of others is noted by its role, and by nothing else. */
bool job_starts_again(struct job *j, const struct cause *c, int status, int code, bool stopped)
{
        if (job_roles_is_ending(j->roles, c->rank) && !outcome_failed(&j->attempt->outcome)) {
                readiness_ended(j->readiness, c->rank);
                job_roles_ended(j->roles, c->rank, code, 0);
                job_drain_rank_again(j->orders.drain, c->rank);
                return true;
        }
        return !stopped && job_roles_can_restart(j->roles, c->rank, code) &&
               restart_scope(j, c, status);
}
