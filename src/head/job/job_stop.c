/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job stops once, after a failure, an order, or the success of rank 0 (--ends-with rank0).
 * stop_job() tells the store's clients why, orders TERM with the grace time on every node, and
 * begins to look for late nodes. An order is told at once; a failure, which the message and the
 * last line tell, only if the ranks do not end within a second. A second order (Ctrl-C again)
 * hurries: KILL now. A second later what readers have not taken is dropped, so that the nodes can
 * send the rest, and after another second the remaining nodes are given up. Files are waited for
 * until none has taken bytes for a second. When all ranks have ended, and only a reader is waited
 * for, the first order hurries, too. Signals of one cause are one order (stop_orders.h).
 *
 * After the grace time a node has LATE_LOOKS * LATE_LOOK_MS to report the end of all ranks, and of
 * their output. No time is counted for a node whose ranks have all ended while a slow reader holds
 * back their output. A busy machine delays local agents: while a local agent is silent, no time is
 * counted, and the heartbeat decides.
 */
#include "head/job/job_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/model/role_list.h"
#include "head/nodes/program_link.h"
#include "head/output/say.h"
#include "head/pull/pull.h"
#include "head/pull/trace_fetch.h"
#include "head/why/why.h"

enum {
        LATE_LOOK_MS = 500,
        LATE_LOOKS = 10,
        SILENT_MS = 1000,
        WHY_MS = 3000,   /* between two Ctrl-\ */
        LASTS_MS = 1000, /* a stop that takes longer is told */
        HURRY_TICK_MS = 20,
        HURRY_TICKS = 50,      /* after the second order for readers, and then for nodes */
        HOLD_MS = 10000,       /* for a cause that has not shown itself */
        HOLD_REASON_MS = 5000, /* and one that has told its reason */
        HOLD_START_MS = 2000,  /* for the nodes of which none has started a rank */
};

/* A grace time of 0 is KILL at once. */
static void stop_nodes(struct job *j, uint32_t grace_ms)
{
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));) {
                number_encode(&n->out, MSG_STOP, grace_ms);
                node_flush(n);
        }
}

/* For the job the node is lost: its agent may still live, and ends its ranks by itself. */
static void give_up_node(struct node *n)
{
        node_break(n, LINK_TIMED_OUT, "did not end its ranks within the grace time");
}

/* Whether only a reader of the output keeps the node from its end. */
static bool waits_for_reader(const struct job *j, const struct node *n)
{
        const struct plan_node *p = &j->attempt->plan->nodes[n->index];

        if (!turns_ended(j->attempt->turns, n->index))
                return false;
        for (int i = 0; i < p->n_ranks; i++)
                if (printer_holds(j->attempt->printer, p->ranks.v[i]))
                        return true;
        return false;
}

/* Whether no rank is alive on any node that is left. */
static bool all_ranks_ended(const struct job *j)
{
        if (!j->attempt->turns)
                return false;
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));)
                if (!turns_ended(j->attempt->turns, n->index))
                        return false;
        return true;
}

/* Gives up nodes that were silent when the grace time ended. */
static void give_up_silent(struct job *j)
{
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));)
                if (n->silent_ns && !n->host->local)
                        node_break(n, LINK_TIMED_OUT,
                                   "did not answer while its ranks were being stopped");
}

/* Counts no time while dumps arrive, nor while an agent of this machine is silent: then the machine
 * is too busy. */
static void on_late_look(uv_timer_t *t)
{
        struct job *j = t->data;
        int64_t silent_ms = MAX(SILENT_MS, 4 * (int64_t)heartbeat_interval_ms(j->heartbeat));
        int64_t since = clock_ns() - INT64_C(1000000) * silent_ms;
        bool dumps = dump_files_arrive(j->attempt->dumps);

        give_up_silent(j);
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));)
                if (n->host->local && n->heard_ns < since)
                        return;
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));) {
                if (dumps || waits_for_reader(j, n))
                        j->timers.late_looks[n->index] = LATE_LOOKS;
                else if (!--j->timers.late_looks[n->index])
                        give_up_node(n);
        }
}

void job_stop_limits(struct job *j)
{
        uv_timer_stop(&j->timers.limit);
        uv_timer_stop(&j->timers.stop);
}

static void give_up_nodes(struct job *j)
{
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));)
                give_up_node(n);
}

/* Ticks are counted, not time: on a busy machine threads that write are as late as this one. */
static void on_hurry_tick(uv_timer_t *t)
{
        struct job *j = t->data;
        struct job_orders *o = &j->orders;
        bool filing = printer_is_filing(j->attempt->printer, HURRY_TICKS);

        if (++o->hurry_ticks < HURRY_TICKS)
                return;
        /* No reader holds output back, so the nodes have had their time. */
        if (o->hurry_ticks == HURRY_TICKS && !printer_pending(j->attempt->printer))
                o->hurry_ticks = 2 * HURRY_TICKS;
        if (o->hurry_ticks >= 2 * HURRY_TICKS)
                give_up_nodes(j);
        printer_abandon(j->attempt->printer, !filing);
        /* Files that go on taking bytes are waited for without a limit. */
        o->hurried = o->hurry_ticks >= 2 * HURRY_TICKS && !filing;
        if (o->hurried)
                uv_timer_stop(t);
}

/* KILL at once. */
static void kill_now(struct job *j)
{
        if (!attempt_step(j->attempt, JOB_EV_HURRY))
                return;
        stop_nodes(j, 0);
        uv_timer_start(&j->timers.stop, on_hurry_tick, HURRY_TICK_MS, HURRY_TICK_MS);
}

/* Writes the reason of a stop in a few words; after Ctrl-C also what follows. @why: that of @c. */
static void describe_stop(const struct job *j, const struct cause *c, const char *why,
                          uint64_t grace_ms, char *to, size_t size)
{
        char grace[32], who[PLAN_RANK_NAME_MAX];
        size_t n;

        if (c->kind == CAUSE_ORDER)
                job_order_name(j, c, to, size); /* the hang before it stands in the last line */
        else
                outcome_brief(c, plan_rank_name(j->attempt->plan, c->rank, who),
                              c->node >= 0 ? j->config->hosts->v[c->node].name : "", why, to, size);
        if (c->kind != CAUSE_ORDER || c->signal != SIGINT || !grace_ms || j->orders.command_pid ||
            all_ranks_ended(j))
                return;
        format_duration(grace, sizeof(grace), (int64_t)grace_ms * 1000);
        n = strlen(to);
        snprintf(to + n, size - n, "; they have %s to end (--grace), Ctrl-C kills them at once",
                 grace);
}

/* `hnlaunch stop` may give another time than the options. */
static uint64_t grace_of_stop(const struct job *j)
{
        return j->orders.grace ? j->orders.grace - 1 : (uint64_t)j->config->options->grace_ms;
}

/* Whether the end of the job has a message of its own on @c. */
static bool has_message(const struct cause *c)
{
        switch (c->kind) {
        case CAUSE_NONE:
        case CAUSE_ORDER:
        case CAUSE_TIMEOUT:
        case CAUSE_HANG:
        case CAUSE_JOIN:
        case CAUSE_STDOUT:
        case CAUSE_DRAIN:
                return false;
        default:
                return true;
        }
}

/* Tells the failure for which the job stops, of what is known by now. */
static void on_stop_lasts(uv_timer_t *t)
{
        struct job *j = t->data;
        const struct cause *c = &j->attempt->outcome.cause;
        uint64_t late_ms = grace_of_stop(j) + LATE_LOOK_MS;
        char why[640], brief[320];

        outcome_review(&j->attempt->outcome, j->attempt->plan, attempt_newest_stderr, j->attempt);
        job_sentence(j, c, why, sizeof(why));
        describe_stop(j, c, why, 0, brief, sizeof(brief));
        if (!j->config->options->quiet)
                say("hnlaunch: stopping all ranks: %s\n", brief);
        uv_timer_start(t, on_late_look, late_ms - MIN(late_ms, (uint64_t)LASTS_MS), LATE_LOOK_MS);
}

/* Orders every rank to end: TERM, after the grace time KILL. Only the first call counts. @why: the
 * sentence of @c. */
static void stop_job(struct job *j, const struct cause *c, const char *why)
{
        uint64_t grace_ms = grace_of_stop(j);
        bool later = has_message(c);
        char brief[320];

        if (!attempt_step(j->attempt, JOB_EV_STOP))
                return;
        describe_stop(j, c, why, grace_ms, brief, sizeof(brief));
        j->orders.held = false;
        j->attempt->outcome.stopped_ns = clock_ns();
        events_emit(j->cluster->events, (struct event){ .kind = EVENT_STOP,
                                                        .node = -1,
                                                        .rank = -1,
                                                        .text = why,
                                                        .brief = later ? NULL : brief });
        if (j->attempt->stores)
                world_servers_stop_requested(j->attempt->stores, why);
        if (j->attempt->printer)
                printer_drop_bars(j->attempt->printer);
        stop_nodes(j, (uint32_t)grace_ms);
        memset(j->timers.late_looks, LATE_LOOKS, j->cluster->n_nodes);
        if (later)
                uv_timer_start(&j->timers.stop, on_stop_lasts, LASTS_MS, 0);
        else
                uv_timer_start(&j->timers.stop, on_late_look, grace_ms + LATE_LOOK_MS,
                               LATE_LOOK_MS);
}

/* Looks where the ranks are; job_end_look() stops them. False: no look is possible. */
static bool look_before_stop(struct job *j)
{
        j->orders.looked_at = j->attempt->number;
        return j->attempt->state == JOB_RUNNING && !j->config->options->quiet &&
               j->config->why.last && j->config->why.last(j->config->why.ctx);
}

/* No rank has failed of its own within the time, as far as is known. */
static void on_hold_over(uv_timer_t *t)
{
        struct job *j = t->data;

        outcome_review(&j->attempt->outcome, j->attempt->plan, attempt_newest_stderr, j->attempt);
        job_end_look(j);
}

/* Whether the program may be missing on all nodes: a node has refused, and none has started a rank.
 */
static bool waits_for_start(const struct job *j)
{
        return j->attempt->outcome.cause.kind == CAUSE_REFUSED && j->attempt->turns &&
               !turns_any_started(j->attempt->turns) && !turns_all_refused(j->attempt->turns);
}

/* Whether there is no rank to stop: all nodes have refused their orders. Agents that have not got
 * all of their orders have to be stopped even then. */
static bool has_nothing_to_stop(const struct job *j)
{
        return j->attempt->outcome.cause.kind == CAUSE_REFUSED && j->attempt->turns &&
               turns_all_refused(j->attempt->turns) && job_roles_have_begun(j->roles);
}

/* Whether the stop waits: TERM would hide the reason or the code of the rank from which the
 * failures so far follow, or the answers of nodes that cannot start the program either. */
static bool hold_stop(struct job *j)
{
        const struct outcome *o = &j->attempt->outcome;
        bool starts = waits_for_start(j);
        uint64_t limit_ms = starts ? HOLD_START_MS : o->cause.echo ? HOLD_MS : HOLD_REASON_MS;

        if (j->attempt->state != JOB_RUNNING ||
            (!starts && !outcome_may_follow(o, j->attempt->plan->world_size, clock_ns(),
                                            attempt_newest_stderr, j->attempt)))
                return false;
        if (j->orders.held)
                return true;
        log_line(LOG_DEBUG, "the stop waits for %s",
                 starts ? "the other nodes" : "the rank from which the failures follow");
        j->orders.held = true;
        j->orders.looked_at = j->attempt->number;
        uv_timer_start(&j->timers.stop, on_hold_over,
                       MIN(limit_ms, (uint64_t)j->config->options->grace_ms), 0);
        return true;
}

/* The order of the questions counts. A drain or a look may take the failure over; without a living
 * rank there is nothing to stop; roles may need their time; and a stop may have to wait for the
 * rank that is to blame. */
void job_failed(void *ctx, bool is_cause)
{
        struct job *j = ctx;
        const struct cause *c = &j->attempt->outcome.cause;
        char why[640];

        /* With --on-failure continue the end of a rank stops no other rank. */
        if ((!is_cause && !j->orders.held) ||
            (j->config->options->on_failure == FAILURE_CONTINUE &&
             job_state_runs(j->attempt->state) &&
             (c->kind == CAUSE_EXIT || c->kind == CAUSE_UNFINALIZED || c->kind == CAUSE_SIGNAL)))
                return;
        if (job_drain_failed(j->orders.drain) || (c->waited && look_before_stop(j)))
                return;
        if (has_nothing_to_stop(j)) {
                uv_timer_stop(&j->timers.stop);
                j->orders.held = false;
                return;
        }
        if (job_roles_drain(j->roles, c) || hold_stop(j))
                return;
        job_sentence(j, c, why, sizeof(why));
        stop_job(j, c, why);
}

/* The program is there on one node at least: the refusals so far are those of some nodes only. */
void job_rank_started(struct job *j)
{
        if (j->orders.held)
                job_failed(j, false);
}

/* While a host is drained, rank 0 may exit with 0 because it has saved. */
void job_rank_succeeded(struct job *j, int rank)
{
        struct attempt *a = j->attempt;

        if (rank || j->config->options->success != SUCCESS_RANK0 || a->state != JOB_RUNNING ||
            job_drain_any(j->orders.drain))
                return;
        job_finish(j, "rank 0 has exited with 0 (--ends-with rank0)");
}

void job_finish(void *ctx, const char *why)
{
        struct job *j = ctx;
        struct outcome *o = &j->attempt->outcome;

        /* First, so that the ends of stopped ranks are no failures. */
        outcome_decide(o);
        if (o->exited < (size_t)j->attempt->plan->world_size)
                stop_job(j, &o->cause, why);
        else if (j->roles) /* an agent may wait for more orders (--restart-scope) */
                stop_nodes(j, (uint32_t)grace_of_stop(j));
}

/* The rank that keeps the others waiting. */
struct culprit {
        int attempt, rank, node; /* rank and node -1 = several, or none */
        int odd;                 /* the first rank that does not wait; -1 = none */
        char *brief;             /* NULL = the reason of a stop does not name it */
        char *finding;           /* all that was found; NULL = EVENT_HANG has told it */
};

void job_drop_culprit(struct job *j)
{
        struct culprit *c = j->orders.culprit;

        if (!c)
                return;
        free(c->brief);
        free(c->finding);
        free(c);
        j->orders.culprit = NULL;
}

void job_blame(struct job *j, const struct why_finding *f)
{
        struct culprit *c = xcalloc(1, sizeof(*c));

        job_drop_culprit(j);
        j->orders.culprit = c;
        c->attempt = j->attempt->number;
        c->rank = f->culprit;
        c->node = c->rank < 0 ? -1 : j->attempt->plan->ranks[c->rank].node;
        c->odd = f->outliers.n ? f->outliers.v[0] : -1;
        c->brief = f->brief ? xstrdup(f->brief) : NULL;
        c->finding = xstrdup(f->text);
        if (f->brief)
                outcome_blame(&j->attempt->outcome, c->rank, c->node, f->brief);
}

/* Emits EVENT_HANG for the newest finding, once. */
static void emit_hang(struct job *j, int64_t ms)
{
        struct culprit *c = j->orders.culprit;

        if (!c || !c->finding)
                return;
        cluster_emit(j->cluster, EVENT_HANG, -1, c->odd, ms, c->finding);
        free(c->finding);
        c->finding = NULL;
}

const char *job_hang_cause(const struct job *j, int *ret_rank)
{
        const struct culprit *c = j->orders.culprit;

        if (!c || !c->brief || c->attempt != j->attempt->number ||
            !job_status_still_hangs(j->status))
                return NULL;
        *ret_rank = c->rank;
        return c->brief;
}

/* Stops the ranks also if @c is not the cause, as attempt_fail() alone would not. */
void job_stop_for(void *ctx, const struct cause *c)
{
        struct job *j = ctx;
        char why[640];

        attempt_fail(j->attempt, c);
        job_sentence(j, c, why, sizeof(why)); /* is no cause if ranks have failed before */
        stop_job(j, c, why);
}

/* Returns the newest stderr of a rank that has written nothing since, else "". malloc'ed. */
static char *read_final_words(void *ctx, int rank, struct burst *ret)
{
        const struct attempt *a = ctx;
        int64_t out_ns = printer_last_burst(a->printer, rank, MSG_STDOUT).newest_ns;
        char *words = attempt_newest_stderr(ctx, rank, ret);

        if (out_ns > ret->newest_ns)
                *words = '\0';
        return words;
}

int job_find_told(struct job *j, char *to, size_t size)
{
        const struct plan *plan = j->attempt->plan;
        struct cause told;
        char who[PLAN_RANK_NAME_MAX];

        if (!j->attempt->printer || !outcome_find_told(&j->attempt->outcome, plan->world_size,
                                                       read_final_words, j->attempt, &told))
                return -1;
        snprintf(to, size, "%s on %.100s has not ended after %.390s",
                 plan_rank_name(plan, told.rank, who),
                 j->config->hosts->v[plan->ranks[told.rank].node].name, told.text);
        return told.rank;
}

/* Blames the rank that has told why it fails and has not ended. False: there is none. */
static bool blame_told_rank(struct job *j, struct cause *c)
{
        char text[768];
        int rank = job_find_told(j, text, sizeof(text));

        if (rank < 0)
                return false;
        cause_blame(c, rank, j->attempt->plan->ranks[rank].node, text);
        return true;
}

void job_ordered(struct job *j, enum cause_kind kind, int number, const char *text)
{
        struct cause c = attempt_cause(j->attempt, kind);
        const char *hang;
        int culprit;

        /* After an order no other attempt begins, except after a hang with --on-hang restart. */
        if (kind != CAUSE_HANG || j->config->options->on_hang != HANG_RESTART) {
                j->orders.ended_by = kind == CAUSE_ORDER && !j->orders.command_pid ? number : -1;
                if (j->attempt->outcome.cause.kind == CAUSE_DRAIN)
                        outcome_excuse(&j->attempt->outcome); /* the order ends the run */
        }
        if (kind == CAUSE_ORDER)
                c.signal = number;
        else
                c.error = number;
        if (text)
                snprintf(c.text, sizeof(c.text), "%s", text);
        hang = job_hang_cause(j, &culprit);
        /* A rank that has told why it fails is named before a hang. */
        if ((kind == CAUSE_STDOUT || !blame_told_rank(j, &c)) && hang) {
                cause_blame(&c, culprit, j->orders.culprit->node, hang);
                emit_hang(j, job_status_hang_ms(j->status)); /* of a look that a user asked for */
        }
        job_stop_for(j, &c);
}

void job_signal_caught(uv_signal_t *s, int signo)
{
        job_signal(s->data, signo);
}

/* Between two attempts no node runs ranks, and the signal reaches nothing. */
static void signal_all_ranks(struct job *j, int signo)
{
        for (struct node *n = NULL; (n = cluster_each_running(j->cluster, n));) {
                number_encode(&n->out, MSG_SIGNAL, (uint32_t)signo);
                node_flush(n);
        }
}

void job_order_signal(struct job *j, int signo, const char *role, const struct role_span *spans,
                      size_t n, int pid)
{
        char text[160], by[24] = "";

        if (pid > 0)
                snprintf(by, sizeof(by), " (pid %d)", pid);
        snprintf(text, sizeof(text), "hnlaunch signal%s sent %s%s%.60s", by,
                 outcome_signal_name(signo), role ? " to role " : "", role ? role : "");
        events_emit(j->config->events, (struct event){ .kind = EVENT_SIGNAL,
                                                       .node = -1,
                                                       .rank = -1,
                                                       .value = signo,
                                                       .text = text });
        j->orders.sent_ns[signo] = clock_ns();
        for (size_t i = 0; role && i < n; i++)
                cluster_signal_ranks(j->cluster,
                                     &(struct ranks_signal){ .signo = (uint32_t)signo,
                                                             .first = (uint32_t)spans[i].first,
                                                             .n = (uint32_t)spans[i].size });
        if (!role)
                signal_all_ranks(j, signo);
}

/* Whether the ranks are being stopped for another attempt without a host. */
static bool is_drained(const struct job *j)
{
        return j->attempt->outcome.cause.kind == CAUSE_DRAIN;
}

/* A second order kills at once, as a second Ctrl-C does, unless the first stop was that of a
 * drain. */
void job_order_stop(struct job *j, int64_t grace_ms, int pid)
{
        if (grace_ms >= 0)
                j->orders.grace = 1 + (uint64_t)MIN(grace_ms, INT64_C(1) << 31);
        j->orders.ended_by = -1;
        if (job_state_stops(j->attempt->state) && !is_drained(j)) {
                kill_now(j);
                return;
        }
        j->orders.stop = (struct stop_orders){ 0 }; /* no signal of the same cause */
        j->orders.command_pid = pid > 0 ? pid : -1;
        job_signal(j, SIGTERM);
}

void job_settle_drain(struct job *j)
{
        struct cause c = attempt_cause(j->attempt, CAUSE_ORDER);

        if (!job_drain_was_end(j->orders.drain))
                return;
        log_line(LOG_WARN, "all agents got SIGTERM: the run ends, and no host is drained");
        outcome_excuse(&j->attempt->outcome);
        c.signal = SIGTERM;
        outcome_happened(&j->attempt->outcome, &c);
}

bool job_outlive_terminal(struct job *j)
{
        if (!j->config->hung_up)
                return false;
        stdin_pump_leave_terminal(j->stdin_pump);
        j->orders.hung_up = true;
        j->config->hung_up(j->config->say_ctx);
        return true;
}

/* The ranks are being stopped already, and no other attempt follows. If by a failure, the first
 * TERM or HUP may be of the same cause, but TERM ends a wait for readers alone. A manager sends
 * TERM to hnlaunch and to the agents, and KILL later. */
static void signal_again(struct job *j, int signo, enum stop_order order)
{
        bool managed = program_link_is_managed(j->config->options->via);

        j->orders.ended_by = signo;
        if (signo == SIGINT || (order == STOP_ORDER_AGAIN && !managed) ||
            (signo == SIGTERM && all_ranks_ended(j))) {
                if (!all_ranks_ended(j) && !j->orders.hurry_signal)
                        j->orders.hurry_signal = signo;
                kill_now(j);
        }
}

/* At once if only a reader of the output is waited for. */
static void stop_by_signal(struct job *j, int signo)
{
        bool ended = all_ranks_ended(j);

        if (is_drained(j))
                log_line(LOG_WARN, "SIG%s: no other attempt follows the drain",
                         sigabbrev_np(signo));
        job_ordered(j, CAUSE_ORDER, signo, NULL);
        if (ended)
                kill_now(j);
}

/* Ends what hnlaunch does: the job, or what follows it. */
static void order_end(struct job *j, int signo)
{
        enum stop_order order = stop_orders_take(&j->orders.stop, signo, clock_ms());

        if (order == STOP_ORDER_SAME)
                log_line(LOG_INFO, "SIG%s: of the same cause as the signal before",
                         sigabbrev_np(signo));
        else if (j->orders.fetching)
                trace_fetch_cancel(j->config->traces);
        else if (j->attempt->core.waits)
                j->attempt->core.waits = false;
        else if (pull_waits(j->config->pull))
                pull_cancel(j->config->pull, "interrupted");
        else if (j->attempt->state == JOB_LEAVING)
                attempt_step(j->attempt, JOB_EV_GONE); /* ends the wait for the agents */
        else if (j->attempt->outcome.cause.kind == CAUSE_ORDER ||
                 (job_state_stops(j->attempt->state) && !is_drained(j)))
                signal_again(j, signo, order);
        else
                stop_by_signal(j, signo);
}

/* Ctrl-\ shows the table of ranks, once more within WHY_MS asks why they wait. A third counts as a
 * first again. */
static void show_ranks(struct job *j)
{
        int64_t now = clock_ms();
        bool again = j->orders.shown_ms && now - j->orders.shown_ms < WHY_MS;

        j->orders.shown_ms = again ? 0 : now;
        if (again && j->config->why.ask)
                j->config->why.ask(j->config->why.ctx);
        else
                job_status_show(j->status);
}

void job_signal(struct job *j, int signo)
{
        if (signo == SIGINT || signo == SIGQUIT)
                say_after_key();
        if (signo == SIGHUP && job_outlive_terminal(j)) {
                log_line(LOG_INFO, "SIGHUP: the run goes on");
        } else if (signo == SIGQUIT) {
                show_ranks(j);
        } else if (signo == SIGTSTP) {
                heartbeat_suspend(j->heartbeat);
        } else if (signo == SIGUSR1 || signo == SIGUSR2) {
                signal_all_ranks(j, signo);
        } else {
                order_end(j, signo);
        }
}

/* A SIGUSR that the manager sends reaches the agents of all nodes: the ranks get it with the first
 * of them, and again only when a node has got it more often than the ranks. */
static void forward_usr_signal(struct job *j, struct node *n, int signo)
{
        size_t i = signo == SIGUSR1 ? 0 : 1;

        if (++n->signals.usr[i] <= j->orders.usr_signals[i])
                return;
        j->orders.usr_signals[i]++;
        job_signal(j, signo);
}

/* The node goes: its ranks have the grace time as all others, and it is not used again. */
static void take_leave(struct job *j, struct node *n, int signo)
{
        struct cause c = attempt_cause(j->attempt, CAUSE_NODE);

        if (n->signals.leaves || n->state != NODE_RUNNING)
                return;
        n->signals.leaves = true;
        c.node = n->index;
        snprintf(c.text, sizeof(c.text), "its agent was ended (%s)", strsignal(signo));
        cluster_emit(j->cluster, EVENT_NODE_LOST, n->index, -1, 0, c.text);
        if (job_state_stops(j->attempt->state))
                log_line(LOG_WARN, "lost %s while its ranks were being stopped: %s", n->host->name,
                         c.text);
        else
                attempt_fail(j->attempt, &c);
}

/* Without a manager, what signals an agent of this machine (the end of a login session, Slurm) has
 * signalled this hnlaunch, too, or, of a node that has dialled in, the hnlaunch there. */
static void take_end_signal(struct job *j, struct node *n, int signo)
{
        bool managed = program_link_is_managed(j->config->options->via);
        enum drain_signal drain = DRAIN_NO;

        if (signo == SIGTERM && (managed || (!n->host->local && !j->config->dial_in)))
                drain = job_drain_signalled(j->orders.drain, (size_t)n->index);
        if (drain == DRAIN_ALL)
                job_signal(j, signo);
        if (drain != DRAIN_NO)
                return;
        if (!managed && !n->host->local) {
                if (!j->config->dial_in)
                        take_leave(j, n, signo);
        } else if (j->attempt->state == JOB_RUNNING) {
                job_signal(j, signo); /* the others of one order change nothing */
        }
}

int job_agent_signal(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        uint32_t signo;

        if (number_decode(&signo, f, err) < 0)
                return -EPROTO;
        if (signo == SIGTERM || signo == SIGHUP || signo == SIGINT)
                take_end_signal(j, n, (int)signo);
        else if (signo != SIGUSR1 && signo != SIGUSR2)
                return err_set(err, EPROTO, "malformed SIGNAL message");
        else if (program_link_is_managed(j->config->options->via))
                forward_usr_signal(j, n, (int)signo);
        return 0;
}

void job_hangs(struct job *j)
{
        const struct options *o = j->config->options;

        emit_hang(j, o->hang_after_ms);
        if (o->on_hang != HANG_REPORT)
                job_ordered(j, CAUSE_HANG, 0,
                            o->on_hang == HANG_STOP ? "the ranks hang (--on-hang stop)"
                                                    : "the ranks hang (--on-hang restart)");
}

static void describe_time_limit(const struct job *j, char *to, size_t size)
{
        snprintf(to, size, "time limit of %s reached (--timeout)",
                 format_span((uint64_t)j->config->options->timeout_ms).text);
}

static void reach_time_limit(struct job *j)
{
        char text[128];

        describe_time_limit(j, text, sizeof(text));
        job_ordered(j, CAUSE_TIMEOUT, 0, text);
}

/* The time is over now, also if the ranks end during the look. */
static void look_before_limit(void *ctx)
{
        struct job *j = ctx;
        struct cause c = attempt_cause(j->attempt, CAUSE_TIMEOUT);

        if (!look_before_stop(j)) {
                reach_time_limit(j);
                return;
        }
        describe_time_limit(j, c.text, sizeof(c.text));
        blame_told_rank(j, &c);
        outcome_happened(&j->attempt->outcome, &c);
}

/* Meanwhile all ranks may have ended, and another attempt may have begun. */
void job_end_look(struct job *j)
{
        char why[640];

        if (!job_state_runs(j->attempt->state) || j->attempt->number != j->orders.looked_at)
                return;
        job_sentence(j, &j->attempt->outcome.cause, why, sizeof(why));
        stop_job(j, &j->attempt->outcome.cause, why);
}

/* Another attempt is ruled out first: all ranks may end during the look that follows. */
void job_time_is_over(uv_timer_t *t)
{
        struct job *j = t->data;

        j->orders.ended_by = -1;
        if (all_ranks_ended(j))
                return; /* a reader may take its time */
        if (j->attempt->state == JOB_RUNNING && !j->config->options->quiet)
                job_status_show_last(j->status, look_before_limit, j);
        else
                reach_time_limit(j);
}
