/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job stops once, after a failure, an order, or the success of rank 0 (--success rank0).
 * stop_job() tells the store's clients why, orders TERM with the grace time on every node, and
 * begins to look for late nodes. A second order (Ctrl-C again) hurries: KILL now, and a second
 * later the remaining nodes are given up.
 *
 * After the grace time a node has LATE_LOOKS * LATE_LOOK_MS to report the end of all ranks. A busy
 * machine delays local agents: while a local agent is silent, no time is counted, and the heartbeat
 * decides.
 */
#include "head/job/job_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "head/nodes/program_link.h"
#include "head/status/rank_table_text.h"

enum {
        LATE_LOOK_MS = 500,
        LATE_LOOKS = 10,
        SILENT_MS = 1000,
        HURRY_MS = 1000, /* after the second order; output may be stuck for ever */
};

static void stop_nodes(struct job *j, uint32_t grace_ms)
{
        for (struct node *n = NULL; (n = cluster_each_running(&j->cluster, n));) {
                number_encode(&n->out, MSG_STOP, grace_ms);
                node_flush(n);
        }
}

static void give_up_nodes(uv_timer_t *t)
{
        struct job *j = t->data;

        for (struct node *n = NULL; (n = cluster_each_running(&j->cluster, n));)
                node_break(n, LINK_TIMED_OUT, "did not end its ranks within the grace time");
}

/* Counts no time while dumps arrive, nor while an agent of this machine is silent: then the machine
 * is too busy. */
static void on_late_look(uv_timer_t *t)
{
        struct job *j = t->data;
        int64_t silent_ms = MAX(SILENT_MS, 4 * (int64_t)heartbeat_interval_ms(&j->heartbeat));
        int64_t since = clock_ns() - INT64_C(1000000) * silent_ms;

        for (struct node *n = NULL; (n = cluster_each_running(&j->cluster, n));)
                if (n->host->local && n->heard_ns < since)
                        return;
        if (dump_files_arrive(j->attempt.dumps))
                j->late_looks = LATE_LOOKS;
        if (--j->late_looks)
                return;
        uv_timer_stop(t);
        give_up_nodes(t);
}

/* Orders every rank to end: TERM, after the grace time KILL. Only the first call counts. */
static void stop_job(struct job *j, const char *why)
{
        uint64_t grace_ms = (uint64_t)j->config.options->grace_ms;

        if (!attempt_step(&j->attempt, JOB_EV_STOP))
                return;
        j->attempt.stopped_ns = clock_ns();
        cluster_emit(&j->cluster, EVENT_STOP, -1, -1, 0, why);
        if (j->attempt.store)
                store_server_stop_requested(j->attempt.store, why);
        stop_nodes(j, (uint32_t)grace_ms);
        j->late_looks = LATE_LOOKS;
        uv_timer_start(&j->late, on_late_look, grace_ms + LATE_LOOK_MS, LATE_LOOK_MS);
}

void job_failed(void *ctx, bool is_cause)
{
        struct job *j = ctx;
        const struct cause *c = &j->attempt.outcome.cause;
        char why[640];

        if (!is_cause ||
            (j->config.options->on_failure == FAILURE_CONTINUE &&
             job_state_runs(j->attempt.state) &&
             (c->kind == CAUSE_EXIT || c->kind == CAUSE_UNFINALIZED || c->kind == CAUSE_SIGNAL)))
                return;
        job_sentence(j, c, why, sizeof(why));
        stop_job(j, why);
}

void job_rank_succeeded(struct job *j, int rank)
{
        struct attempt *a = &j->attempt;

        if (rank || j->config.options->success != SUCCESS_RANK0 || a->state != JOB_RUNNING)
                return;
        outcome_decide(&a->outcome);
        if (a->outcome.exited < (size_t)a->plan->world_size)
                stop_job(j, "rank 0 has exited with 0 (--success rank0)");
}

void job_ordered(struct job *j, enum cause_kind kind, int number, const char *text)
{
        struct cause c = { .kind = kind, .rank = -1, .node = -1 };

        if (kind == CAUSE_ORDER)
                c.signal = number;
        else
                c.error = number;
        if (text)
                snprintf(c.text, sizeof(c.text), "%s", text);
        attempt_fail(&j->attempt, &c);
        stop_job(j, "ordered");
}

void job_signal_caught(uv_signal_t *s, int signo)
{
        job_signal(s->data, signo);
}

void job_signal(struct job *j, int signo)
{
        if (signo == SIGQUIT) {
                job_status_show(j->status);
        } else if (signo == SIGTSTP) {
                heartbeat_suspend(&j->heartbeat);
        } else if (signo == SIGUSR1 || signo == SIGUSR2) {
                for (struct node *n = NULL; (n = cluster_each_running(&j->cluster, n));) {
                        number_encode(&n->out, MSG_SIGNAL, (uint32_t)signo);
                        node_flush(n);
                }
        } else if (j->attempt.state == JOB_LEAVING) {
                attempt_step(&j->attempt, JOB_EV_GONE); /* ends the wait for the agents */
        } else if (j->attempt.outcome.cause.kind == CAUSE_ORDER ||
                   job_state_stops(j->attempt.state)) {
                /* A manager sends the same order to hnlaunch and to the agents, and SIGKILL later.
                 */
                if (signo == SIGTERM && program_link_is_managed(j->config.options->via))
                        return;
                if (!attempt_step(&j->attempt, JOB_EV_HURRY))
                        return;
                stop_nodes(j, 0);
                uv_timer_start(&j->late, give_up_nodes, HURRY_MS, 0);
        } else {
                job_ordered(j, CAUSE_ORDER, signo, NULL);
        }
}

/* A SIGUSR that the manager sends reaches the agents of all nodes: the ranks get it with the first
 * of them, and again only when a node has got it more often than the ranks. */
static void forward_usr_signal(struct job *j, struct node *n, int signo)
{
        size_t i = signo == SIGUSR1 ? 0 : 1;

        if (++n->usr_signals[i] <= j->usr_signals[i])
                return;
        j->usr_signals[i]++;
        job_signal(j, signo);
}

int job_manager_signal(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        uint32_t signo;

        if (number_decode(&signo, f, err) < 0)
                return -EPROTO;
        if (!program_link_is_managed(j->config.options->via))
                return err_set(err, EPROTO, "message out of turn: SIGNAL without a manager");
        if (signo == SIGUSR1 || signo == SIGUSR2)
                forward_usr_signal(j, n, (int)signo);
        else if (signo != SIGTERM && signo != SIGHUP && signo != SIGINT)
                return err_set(err, EPROTO, "malformed SIGNAL message");
        else if (j->attempt.state == JOB_RUNNING)
                job_signal(j, (int)signo); /* the others of one order change nothing */
        return 0;
}

static void reach_time_limit(void *ctx)
{
        struct job *j = ctx;
        char text[128];

        snprintf(text, sizeof(text), "time limit of %s reached (--timeout)",
                 rank_span((uint64_t)j->config.options->timeout_ms).text);
        job_ordered(j, CAUSE_TIMEOUT, 0, text);
}

void job_time_is_over(uv_timer_t *t)
{
        struct job *j = t->data;

        if (j->attempt.state == JOB_RUNNING && !j->config.options->quiet)
                job_status_show_last(j->status, reach_time_limit, j);
        else
                reach_time_limit(j);
}
