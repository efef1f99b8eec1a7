/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_private.h"

#include <signal.h>
#include <stdio.h>

#include "head/status/rank_table_text.h"

enum {
        /* Beyond the grace time a node has so many looks, 5 s, to say GONE. */
        LATE_LOOK_MS = 500,
        LATE_LOOKS = 10,
        SILENT_MS = 1000,
        HURRY_MS = 1000, /* the same after a second Ctrl-C: its output may be stuck for ever */
};

static void stop_node(struct node *n, uint32_t grace_ms)
{
        if (n->state != NODE_RUNNING)
                return;
        stop_encode(node_out(n), &(struct stop){ grace_ms });
        node_flush(n);
}

static void too_late(uv_timer_t *t)
{
        struct job *j = t->data;

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state == NODE_RUNNING)
                        node_break(&j->nodes[i], LINK_TIMED_OUT,
                                   "did not end its ranks within the grace time");
}

/* Agents of this machine that do not come to speak, or that we did not come to hear, because the
 * machine is too busy: their silence is for heartbeat.c to judge. */
static bool is_busy(const struct job *j)
{
        int64_t since =
                clock_ns() - INT64_C(1000000) * MAX(SILENT_MS, 4 * (int64_t)heartbeat_ms(j));

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state == NODE_RUNNING && j->nodes[i].host->local &&
                    j->nodes[i].heard_ns < since)
                        return true;
        return false;
}

static void look_whether_late(uv_timer_t *t)
{
        struct job *j = t->data;

        if (is_busy(j) || --j->late_looks)
                return;
        uv_timer_stop(t);
        too_late(t);
}

/* Orders every rank to end: TERM, after the grace time KILL. Once; hurry makes it KILL now. */
void job_stop(struct job *j, const char *why)
{
        uint64_t grace = (uint64_t)j->c.options->grace_ms;

        if (!job_step(j, JOB_EV_STOP))
                return;
        j->stopped_ns = clock_ns();
        job_emit(j, EVENT_STOP, -1, -1, 0, why);
        if (j->store)
                store_server_stop_requested(j->store, why);
        for (size_t i = 0; i < j->n_nodes; i++)
                stop_node(&j->nodes[i], (uint32_t)grace);
        j->late_looks = LATE_LOOKS;
        uv_timer_start(&j->late, look_whether_late, grace + LATE_LOOK_MS, LATE_LOOK_MS);
}

static void hurry(struct job *j)
{
        if (!job_step(j, JOB_EV_HURRY))
                return;
        for (size_t i = 0; i < j->n_nodes; i++)
                stop_node(&j->nodes[i], 0);
        uv_timer_start(&j->late, too_late, HURRY_MS, 0);
}

/* A new cause: the first failure stops everything. */
void job_failed(struct job *j, bool is_cause)
{
        char why[640];

        if (!is_cause ||
            (j->c.options->on_failure == FAILURE_CONTINUE && job_state_runs(j->job_state) &&
             (j->outcome.cause.kind == CAUSE_EXIT || j->outcome.cause.kind == CAUSE_SIGNAL)))
                return;
        job_sentence(j, &j->outcome.cause, why, sizeof(why));
        job_stop(j, why);
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
        job_failed(j, outcome_happened(&j->outcome, &c));
        job_stop(j, "ordered");
}

void job_signal_caught(uv_signal_t *s, int signo)
{
        struct job *j = s->data;

        if (signo == SIGQUIT) {
                job_status_show(j);
        } else if (signo == SIGTSTP) {
                heartbeat_sleep(j);
        } else if (signo == SIGUSR1 || signo == SIGUSR2) {
                for (size_t i = 0; i < j->n_nodes; i++)
                        if (j->nodes[i].state == NODE_RUNNING) {
                                signal_encode(node_out(&j->nodes[i]), (uint32_t)signo);
                                node_flush(&j->nodes[i]);
                        }
        } else if (j->job_state == JOB_LEAVING) {
                job_step(j, JOB_EV_GONE); /* all is over: only the waiting ends */
        } else if (j->outcome.cause.kind == CAUSE_ORDER || job_state_stops(j->job_state)) {
                hurry(j);
        } else {
                job_ordered(j, CAUSE_ORDER, signo, NULL);
        }
}

void job_time_reached(struct job *j)
{
        char text[128];

        snprintf(text, sizeof(text), "time limit of %s reached (--timeout)",
                 rank_span((uint64_t)j->c.options->timeout_ms).text);
        job_ordered(j, CAUSE_TIMEOUT, 0, text);
}

void job_time_is_over(uv_timer_t *t)
{
        struct job *j = t->data;

        if (j->job_state == JOB_RUNNING && !j->c.options->quiet)
                job_status_show_last(j);
        else
                job_time_reached(j);
}
