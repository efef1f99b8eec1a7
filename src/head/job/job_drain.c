/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the time of a host is over, its ranks get STOP: TERM, and KILL after the grace time. The
 * others may then answer, or fail for lack of these peers: until the grace time is over, and at
 * most PEERS_MS after the end of the host's ranks. Then the attempt ends.
 *
 * Several hosts may be drained at once: the earliest of their times counts, and the next attempt
 * begins without all of them. A failure of a rank or node meanwhile follows from the
 * drain: ranks that have saved leave the others. Orders to end, limits of time and hn_abort() do
 * not, and end the run as ever.
 *
 * SIGTERM to one agent drains its host, and to all of them within SAME_ORDER_MS it is the end of
 * the run. Until then it is not known which of both it is, and failures of ranks, which may have
 * got it, too, end nothing. When all ranks end meanwhile, job_drain_was_end() waits: an agent
 * without ranks leaves at SIGTERM.
 */
#include "head/job/job_drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/job_roles.h"
#include "head/job/turns.h"
#include "head/job/world_servers.h"
#include "head/nodes/program_link.h"

/* SAME_ORDER_MS: between the first and the last SIGTERM of an order to all agents. PEERS_MS: for
 * the other ranks to answer, or to fail for lack of the ended ranks. */
enum { SAME_ORDER_MS = 2000, PEERS_MS = 5000 };

enum rank_save {
        RANK_RUNS,
        RANK_ANSWERED, /* called hn_drained(), and has not ended */
        RANK_LEFT,     /* has ended without either, as far as is known */
        RANK_SAVED,    /* has answered or exited with 0, and has ended */
};

struct job_drain {
        struct cluster *cluster;
        struct attempt *attempt;
        const struct job_roles *roles; /* NULL = the job has none */
        void (*end)(void *ctx, const struct cause *c);
        void *ctx;
        uv_timer_t timer;         /* the time of the ranks */
        struct intlist nodes;     /* in the order in which they were ordered */
        struct strv orders;       /* what has ordered each, for people */
        int64_t began_ns;         /* clock_ns() of the first order */
        int64_t until_ms;         /* clock_ms() at which the first time is over */
        int due;                  /* the node whose time that is */
        bool due_stopped;         /* its ranks have been told to end, and the time is the others' */
        struct intlist signalled; /* nodes, since the time below */
        int64_t signalled_ms;     /* clock_ms(); 0 = never */
        uint8_t *saves;           /* by rank: enum rank_save; NULL = none has ended or answered */
        int n_answered;           /* ranks that are RANK_ANSWERED */
        int n_saved;              /* ranks that are RANK_SAVED */
        bool ended;               /* the attempt ends because of them */
};

static bool is_draining(const struct job_drain *d)
{
        return d->nodes.n && !d->ended && d->attempt->state == JOB_RUNNING;
}

/* @how: the reason why now. */
static void end_drained(struct job_drain *d, const char *how)
{
        struct cause c = attempt_cause(d->attempt, CAUSE_DRAIN);

        d->ended = true;
        if (d->cluster->options->on_failure == FAILURE_CONTINUE)
                outcome_excuse(&d->attempt->outcome); /* the attempt went on in spite of them */
        c.node = d->nodes.v[0];
        c.at_ns = d->began_ns; /* before all that follows from it */
        snprintf(c.text, sizeof(c.text), "%s, %s", d->orders.v[0], how);
        d->end(d->ctx, &c);
}

static void on_drain_time_over(uv_timer_t *t);
static void end_if_all_answered(struct job_drain *d);

/* Brings the time forward to @ms from now. */
static void end_within(struct job_drain *d, int64_t ms)
{
        d->until_ms = MIN(d->until_ms, clock_ms() + ms);
        uv_timer_start(&d->timer, on_drain_time_over,
                       (uint64_t)MAX(d->until_ms - clock_ms(), INT64_C(1)), 0);
}

/* Whether no rank of the node whose time is over is left. */
static bool has_due_ended(const struct job_drain *d)
{
        return d->cluster->nodes[d->due].state != NODE_RUNNING ||
               turns_ended(d->attempt->turns, d->due);
}

static void stop_due_node(struct job_drain *d)
{
        struct node *n = &d->cluster->nodes[d->due];
        uint32_t grace_ms = (uint32_t)d->cluster->options->grace_ms;

        log_line(LOG_WARN, "the time of %s is over: its ranks get SIGTERM", n->host->name);
        d->due_stopped = true;
        number_encode(&n->out, MSG_STOP, grace_ms);
        node_flush(n);
        /* end_within() only shortens a time. */
        d->until_ms = INT64_MAX;
        end_within(d, grace_ms);
}

static void on_drain_time_over(uv_timer_t *t)
{
        struct job_drain *d = t->data;

        if (!is_draining(d))
                return;
        if (!d->due_stopped && outcome_failed(&d->attempt->outcome))
                end_drained(d, "and ranks have left");
        else if (d->due_stopped || has_due_ended(d))
                end_drained(d, "the time for its ranks is over");
        else
                stop_due_node(d);
}

/* ---- orders ---- */

/* The key of the host comes first: it is there when the other one is seen. */
static void tell_ranks(const struct job_drain *d, struct node *n, int64_t in_ms)
{
        CLEANUP(free_textp) char *time = xasprintf("%lld", (long long)in_ms);

        for (size_t i = 0; i < 2; i++) {
                const char *before = i ? "/" : ""; /* PyTorch's clients put it there */
                CLEANUP(free_textp) char *key = xasprintf("%s" STORE_DRAIN_KEY, before);
                CLEANUP(free_textp) char *of_host = xasprintf("%s/%s", key, n->host->name);

                world_servers_set(d->attempt->stores, of_host, time);
                world_servers_set(d->attempt->stores, key, n->host->name);
        }
        if (intlist_has(&d->signalled, n->index))
                number_encode(&n->out, MSG_SIGNAL, 0); /* its agent waits for an order */
        if (d->cluster->options->drain.signal)
                number_encode(&n->out, MSG_SIGNAL, (uint32_t)d->cluster->options->drain.signal);
        node_flush(n);
}

/* Whether it is connected and has no ranks. */
static bool is_spare(const struct job_drain *d, const struct node *n)
{
        return n->state == NODE_READY && !n->signals.leaves &&
               !d->attempt->plan->nodes[n->index].n_ranks;
}

/* Refuses a drain that could only end the run: without restarts, spares or another way on, the user
 * wants `stop`. */
static int check_order(const struct job_drain *d, const struct node *n, struct error *err)
{
        const struct options *o = d->cluster->options;

        if (!o->max_restarts && !options_replace_nodes(o) && !o->drain.requeue_exit)
                return err_set(err, EPERM,
                               "it cannot go on without a host: it has none of --restart auto, "
                               "--max-restarts, --spares, --min-nodes and --requeue-exit");
        if (d->attempt->state != JOB_RUNNING)
                return err_set(err, EAGAIN, "its ranks do not run, or are being stopped");
        if (n->state != NODE_RUNNING && !is_spare(d, n))
                return err_set(err, ENOENT, "no rank runs on %s, and it is no spare host",
                               n->host->name);
        return 0;
}

/* The agent stays to the end of the attempt: it may have children in the tree. */
static void leave_spare(const struct job_drain *d, struct node *n, const char *by)
{
        n->signals.leaves = true;
        n->refusal = NODE_RETIRED;
        log_line(LOG_WARN, "%s is drained (%s): it is no spare host any more", n->host->name, by);
        cluster_emit(d->cluster, EVENT_NODE_DRAINED, n->index, -1, 0, by);
}

int job_drain_order(struct job_drain *d, size_t node, int64_t in_ms, const char *by,
                    struct error *err)
{
        struct node *n = &d->cluster->nodes[node];
        int64_t until_ms = clock_ms() + in_ms;
        int r = check_order(d, n, err);

        if (r < 0)
                return r;
        if (n->state != NODE_RUNNING) {
                leave_spare(d, n, by);
                return 0;
        }
        log_line(LOG_WARN, "%s is drained (%s): the ranks have %s to save and end", n->host->name,
                 by, format_span((uint64_t)in_ms).text);
        if (!d->nodes.n)
                d->began_ns = clock_ns();
        if (!d->nodes.n || until_ms < d->until_ms) {
                d->until_ms = until_ms;
                d->due = n->index;
                uv_timer_start(&d->timer, on_drain_time_over, (uint64_t)in_ms, 0);
        }
        if (!intlist_has(&d->nodes, n->index)) {
                intlist_add(&d->nodes, n->index);
                strv_push(&d->orders, by);
        }
        tell_ranks(d, n, in_ms);
        end_if_all_answered(d); /* all may wait to start again */
        return 0;
}

/* Whether it may still be the end of the run. */
static bool is_undecided(const struct job_drain *d)
{
        return d->signalled_ms && clock_ms() < d->signalled_ms + SAME_ORDER_MS;
}

/* Whether its agent has ended, and not only the way to the node. */
static bool has_left(const struct node *n)
{
        return n->signals.leaves || ((n->ended || n->state == NODE_FAILED) && n->failure &&
                                     n->failure->cause == LINK_ENDED);
}

/* Whether each agent got it that a manager or a cloud can signal: a manager has not started those
 * of this machine. */
static bool are_all_signalled(const struct job_drain *d)
{
        bool managed = program_link_is_managed(d->cluster->options->via);

        for (size_t i = 0; i < d->cluster->n_nodes; i++) {
                const struct node *n = &d->cluster->nodes[i];

                if (d->attempt->plan->nodes[i].n_ranks && n->state != NODE_FAILED &&
                    !(managed && n->host->local) && !has_left(n) &&
                    !intlist_has(&d->signalled, n->index))
                        return false;
        }
        return true;
}

enum drain_signal job_drain_signalled(struct job_drain *d, size_t node)
{
        const struct options *o = d->cluster->options;
        struct error err;
        int r = check_order(d, &d->cluster->nodes[node], &err);
        /* -ENOENT: its ranks have ended, those of other nodes may be meant as well. */
        bool refused = (!o->max_restarts && !o->drain.requeue_exit) || (r < 0 && r != -ENOENT);
        bool again;

        if (refused && !is_undecided(d))
                return DRAIN_NO;
        if (!is_undecided(d)) {
                intlist_finish(&d->signalled);
                d->signalled_ms = clock_ms();
        }
        again = intlist_has(&d->signalled, (int)node); /* one cause may send several */
        if (!again)
                intlist_add(&d->signalled, (int)node);
        if (refused || again)
                return refused ? DRAIN_NO : DRAIN_ONE;
        if (are_all_signalled(d)) {
                outcome_excuse(&d->attempt->outcome);
                return DRAIN_ALL;
        }
        if (!r)
                job_drain_order(d, node, o->drain.time_ms, "SIGTERM to its agent", &err);
        return DRAIN_ONE;
}

/* Whether each agent that are_all_signalled() wants got it, or has left. */
static bool have_all_left(const struct job_drain *d)
{
        bool managed = program_link_is_managed(d->cluster->options->via);

        for (size_t i = 0; i < d->cluster->n_nodes; i++) {
                const struct node *n = &d->cluster->nodes[i];

                if (d->attempt->plan->nodes[i].n_ranks && !(managed && n->host->local) &&
                    !has_left(n) && !intlist_has(&d->signalled, n->index))
                        return false;
        }
        return true;
}

/* Waits only in the seconds after a SIGTERM with possible others to come. The timer does nothing
 * but turn the loop, as no ranks run. */
bool job_drain_was_end(struct job_drain *d)
{
        bool undecided = d->ended && is_undecided(d);

        while (d->ended && is_undecided(d) && !have_all_left(d) && d->attempt->state != JOB_ENDED) {
                uv_timer_start(
                        &d->timer, on_drain_time_over,
                        (uint64_t)MAX(d->signalled_ms + SAME_ORDER_MS - clock_ms(), INT64_C(1)), 0);
                uv_run(d->timer.loop, UV_RUN_ONCE);
        }
        return undecided && have_all_left(d);
}

const char *job_drain_by(const struct job_drain *d, size_t node)
{
        for (size_t i = 0; i < d->nodes.n; i++)
                if (d->nodes.v[i] == (int)node)
                        return d->orders.v[i];
        return NULL;
}

bool job_drain_any(const struct job_drain *d)
{
        return d->nodes.n;
}

/* ---- answers ---- */

/* Ranks that wait to start again within the attempt have nothing to save: they start with the next
 * one (order_ranks_again()). */
static void end_if_all_answered(struct job_drain *d)
{
        const struct attempt *a = d->attempt;

        if (is_draining(d) &&
            a->outcome.exited + (size_t)d->n_answered + job_roles_count_waiting(d->roles) >=
                    (size_t)a->plan->world_size)
                end_drained(d, d->n_answered ? "all ranks have saved" : "all ranks have ended");
}

static uint8_t *save_of(struct job_drain *d, int rank)
{
        if (!d->saves)
                d->saves = xcalloc((size_t)d->attempt->plan->world_size, sizeof(*d->saves));
        return &d->saves[rank];
}

void job_drain_rank_ended(struct job_drain *d, int rank, bool well)
{
        uint8_t *save = save_of(d, rank);
        bool answered = *save == RANK_ANSWERED;

        d->n_answered -= answered;
        d->n_saved += answered || well;
        *save = answered || well ? RANK_SAVED : RANK_LEFT;
        end_if_all_answered(d);
        if (is_draining(d) && d->due_stopped && has_due_ended(d))
                end_within(d, PEERS_MS);
}

void job_drain_rank_again(struct job_drain *d, int rank)
{
        uint8_t *save = save_of(d, rank);

        d->n_answered -= *save == RANK_ANSWERED;
        d->n_saved -= *save == RANK_SAVED;
        *save = RANK_RUNS;
        end_if_all_answered(d);
}

/* An answer before the question does not count. One that the end of the rank has overtaken does,
 * but the rank counts as ended already. */
void job_drain_answered(struct job_drain *d, int rank)
{
        uint8_t *save;

        if (!d->nodes.n && d->attempt->state == JOB_RUNNING)
                return;
        save = save_of(d, rank);
        if (*save == RANK_RUNS) {
                *save = RANK_ANSWERED;
                d->n_answered++;
        } else if (*save == RANK_LEFT) {
                *save = RANK_SAVED;
                d->n_saved++;
        }
        end_if_all_answered(d);
}

bool job_drain_failed(struct job_drain *d)
{
        const struct outcome *o = &d->attempt->outcome;

        if (!is_draining(d) || o->cause.kind == CAUSE_ABORT ||
            (!outcome_is_workers(o) && o->cause.kind != CAUSE_NODE))
                return false;
        if (is_undecided(d))
                end_within(d, d->signalled_ms + SAME_ORDER_MS - clock_ms());
        else
                end_drained(d, d->due_stopped ? "the time for its ranks is over"
                                              : "and ranks have left");
        return true;
}

bool job_drain_all_saved(const struct job_drain *d)
{
        return d->attempt->plan && d->n_saved == d->attempt->plan->world_size;
}

/* ---- life ---- */

struct job_drain *job_drain_create(struct cluster *c, struct attempt *a, const struct job_roles *r,
                                   void (*end)(void *ctx, const struct cause *c), void *ctx)
{
        struct job_drain *d = xcalloc(1, sizeof(*d));

        d->cluster = c;
        d->attempt = a;
        d->roles = r;
        d->end = end;
        d->ctx = ctx;
        cluster_init_timer(c, &d->timer, d);
        return d;
}

void job_drain_forget(struct job_drain *d)
{
        uv_timer_stop(&d->timer);
        intlist_finish(&d->nodes);
        strv_finish(&d->orders);
        intlist_finish(&d->signalled);
        d->signalled_ms = 0;
        free(d->saves);
        d->saves = NULL;
        d->n_answered = d->n_saved = 0;
        d->ended = d->due_stopped = false;
}

void job_drain_close(struct job_drain *d)
{
        job_drain_forget(d);
        uv_close((uv_handle_t *)&d->timer, NULL);
}

void job_drain_free(struct job_drain *d)
{
        free(d);
}
