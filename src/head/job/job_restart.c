/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another attempt: the live agents and their links are kept, everything else of the last attempt
 * goes (design D20). Ranks keep their numbers; those of a lost node move to a spare host.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_private.h"

enum {
        HEALTHY_MS = 60000, /* an attempt that ran so long was no crash loop */
        BACKOFF_MS = 1000,  /* before the second restart in a row; then doubled */
        BACKOFF_MAX_MS = 60000,
};

static bool worth_it(const struct job *j)
{
        enum cause_kind kind = j->outcome.cause.kind;

        return (kind == CAUSE_SIGNAL || kind == CAUSE_EXIT || kind == CAUSE_NODE) &&
               j->job_state != JOB_ENDED && j->attempt < j->c.options->max_restarts;
}

static bool has_devices(const struct node *n, const struct intlist *devices)
{
        for (size_t i = 0; i < devices->n; i++) {
                bool found = false;

                for (uint32_t g = 0; g < n->hello.n_gpus && !found; g++)
                        found = n->hello.gpus[g].index == (uint32_t)devices->v[i];
                if (!found)
                        return false;
        }
        return true;
}

static bool replace(struct job *j, struct plan *plan, size_t lost)
{
        for (size_t i = 0; i < j->n_nodes; i++) {
                if (j->nodes[i].state != NODE_READY || plan->nodes[i].n_ranks ||
                    !has_devices(&j->nodes[i], &plan->nodes[lost].gpus) ||
                    !plan_move(plan, lost, i))
                        continue;
                log_line(LOG_WARN, "%s takes the place of %s", j->nodes[i].host->name,
                         j->nodes[lost].host->name);
                job_emit(j, EVENT_NODE_REPLACED, (int)lost, -1, 0, j->nodes[i].host->name);
                return true;
        }
        log_line(LOG_WARN, "no spare host can take the place of %s: the job is not started again",
                 j->nodes[lost].host->name);
        return false;
}

static bool replace_lost(struct job *j, struct plan *plan)
{
        for (size_t i = 0; i < j->n_nodes; i++)
                if (plan->nodes[i].n_ranks && j->nodes[i].state == NODE_FAILED &&
                    !replace(j, plan, i))
                        return false;
        return true;
}

/* What belonged to the last attempt. */
static void forget_attempt(struct job *j)
{
        uv_timer_stop(&j->late);
        outcome_finish(&j->outcome);
        j->lost_before = job_lost_bytes(j);
        printer_destroy(j->printer);
        j->printer = NULL;
        store_server_destroy(j->store);
        j->store = NULL;
        job_step(j, JOB_EV_AGAIN);
        for (size_t i = 0; i < j->n_nodes; i++)
                node_again(&j->nodes[i]);
}

void job_unreachable(struct job *j, const char *text)
{
        struct cause c = { .kind = CAUSE_REFUSED, .rank = -1, .node = (int)j->endpoint.first };

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->plan->nodes[i].n_ranks && j->nodes[i].state == NODE_FAILED) {
                        c.kind = CAUSE_NODE;
                        c.node = (int)i;
                        text = j->nodes[i].failure->fact;
                }
        c.at_ns = clock_ns();
        snprintf(c.text, sizeof(c.text), "%s", text);
        outcome_happened(&j->outcome, &c);
}

static void slept(uv_timer_t *t)
{
        ((struct job *)t->data)->sleeping = false;
}

static void sleep_ms(struct job *j, uint64_t ms)
{
        j->sleeping = true;
        uv_timer_start(&j->patience, slept, ms, 0);
        while (j->sleeping && !outcome_failed(&j->outcome))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->patience);
}

static uint64_t backoff_ms(struct job *j)
{
        uint64_t ms;

        if (job_since_launch_ms(j) >= HEALTHY_MS) {
                j->crashes = 0;
                return 0;
        }
        ms = j->crashes ? (uint64_t)BACKOFF_MS << MIN(j->crashes - 1, 16) : 0;
        j->crashes++;
        return MIN(ms, (uint64_t)BACKOFF_MAX_MS);
}

/* Who was lost meanwhile, or found to be, is replaced as well. The last attempt's cause is
 * forgotten by now: a node that nobody can replace is one. */
static bool is_whole(struct job *j, struct plan *plan)
{
        if (!job_tree_rejoin(j))
                return false;
        if (replace_lost(j, plan))
                return true;
        job_unreachable(j, "a node was lost between two attempts");
        return false;
}

bool job_restart(struct job *j, struct plan *plan)
{
        const struct cause *c = &j->outcome.cause;
        char why[640], text[800], pause[32];
        uint64_t ms;

        if (!worth_it(j))
                return false;
        if (!job_tree_rejoin(j) || !replace_lost(j, plan))
                return false;
        ms = backoff_ms(j);
        job_sentence(j, c, why, sizeof(why));
        j->attempt++;
        strv_pushf(&j->earlier, "attempt %d ended: %s", j->attempt, why);
        snprintf(pause, sizeof(pause), " in %.3g s", (double)ms / 1000);
        snprintf(text, sizeof(text), "restart %d of %d%s: %s", j->attempt,
                 j->c.options->max_restarts, ms ? pause : "", why);
        log_line(LOG_WARN, "%s", text);
        job_emit(j, EVENT_RESTART, c->node, c->rank, j->attempt, why);
        forget_attempt(j);
        if (ms)
                sleep_ms(j, ms);
        return !outcome_failed(&j->outcome) && is_whole(j, plan);
}
