/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_attempt_start.c has the start. Running: SIGCHLD leads to node_attempt_reap(), the only
 * caller of waitpid(). Stopping: node_attempt_stop() and the timer @grace walk through TERMINATING
 * and KILLING; node_attempt_signals.c tells processes in order. node_attempt_end.c has the end of a
 * rank, and of the attempt.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/inspect/node_facts.h"
#include "agent/pmix/pmix_service.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        LEFTOVER_GRACE_MS = 4500, /* at most, for leftovers, after LINGER_MS */
        REAP_MAX = 256,           /* in one turn of the loop */
        HELD_MS = 200,            /* a killed process is reaped long before */
};

/* --- the ranks -------------------------------------------------------------------------------- */

/* Reaped workers are passed over: the kernel may have given their number to another process. */
static struct worker *find_worker(const struct node_attempt *t, pid_t pid)
{
        for (size_t i = 0; i < t->n_workers; i++)
                if (!t->workers[i]->reaped && t->workers[i]->pid == pid)
                        return t->workers[i];
        return NULL;
}

struct worker *node_attempt_find_rank(const struct node_attempt *t, uint32_t rank)
{
        for (size_t i = 0; i < t->n_workers; i++)
                if (t->workers[i]->rank == rank)
                        return t->workers[i];
        return NULL;
}

struct rank_world *node_attempt_find_world(const struct node_attempt *t, uint32_t rank)
{
        for (size_t i = 0; i < t->groups.n; i++)
                if (rank_world_has(t->groups.v[i], rank))
                        return t->groups.v[i];
        return NULL;
}

void node_attempt_resume_outputs(struct node_attempt *t)
{
        for (size_t i = 0; i < t->n_workers; i++)
                if (t->workers[i]->started)
                        worker_each_output(t->workers[i], stream_resume);
}

/* --- stopping --------------------------------------------------------------------------------- */

static void on_grace_over(uv_timer_t *timer);

void node_attempt_kill(struct node_attempt *t)
{
        t->phase = KILLING;
        /* A tracer can keep a killed rank from being reaped: drop_held_workers() gives such ranks
         * up. */
        uv_timer_start(&t->timers.grace, on_grace_over, HELD_MS, HELD_MS);
        for (size_t i = 0; i < t->n_workers; i++)
                worker_signal(t->workers[i], SIGKILL);
        contain_kill(&t->contain);
}

/* Finds the ranks on their way out: connections are closed, and peers fail, long before a busy node
 * can reap the rank. */
static void mark_leaving(struct node_attempt *t)
{
        struct proc_stat p;

        for (size_t i = 0; i < t->n_workers; i++)
                if (!t->workers[i]->reaped && proc_read_stat(&p, t->workers[i]->pid))
                        t->workers[i]->left = p.is_ending;
}

void node_attempt_stop(struct node_attempt *t, uint32_t grace_ms)
{
        t->groups.more = false; /* announced orders do not come any more */
        if (t->phase == IDLE || t->phase >= KILLING)
                return;
        /* A tool that reads a stack keeps the rank stopped. */
        inspection_stop(t->inspection);
        node_attempt_cancel_orders(t);
        if (t->phase < TERMINATING)
                mark_leaving(t);
        if (!grace_ms) {
                node_attempt_kill(t);
                return;
        }
        if (t->phase < TERMINATING)
                node_attempt_reap(t); /* a rank that has ended by now was not stopped by this */
        if (t->phase < TERMINATING) {
                t->phase = TERMINATING;
                rank_stop_begin(t, grace_ms);
                uv_timer_start(&t->timers.grace, on_grace_over, grace_ms, 0);
        } else if (uv_timer_get_due_in(&t->timers.grace) > grace_ms) {
                /* A later order may shorten the grace time, never extend it. */
                rank_stop_within(t, grace_ms);
                uv_timer_start(&t->timers.grace, on_grace_over, grace_ms, 0);
        }
}

/* Reports killed ranks that cannot be reaped because of a tracer. */
static void drop_held_workers(struct node_attempt *t)
{
        for (size_t i = 0; i < t->n_workers; i++) {
                if (t->workers[i]->reaped || !t->workers[i]->started ||
                    !proc_is_held(t->workers[i]->pid))
                        continue;
                log_line(LOG_WARN,
                         "rank %u (pid %d) was killed but not reaped: a tracer is attached",
                         t->workers[i]->rank, (int)t->workers[i]->pid);
                t->workers[i]->reaped = true;
                t->n_alive--;
                /* The status is made up: SIGKILL was sent, and the kernel reports no other until
                 * the tracer lets go. */
                node_attempt_report_exit(t, t->workers[i], SIGKILL);
        }
}

/* The timer has three uses, told apart by the phase: leftovers, the grace time, and killed
 * processes. */
static void on_grace_over(uv_timer_t *timer)
{
        struct node_attempt *t = timer->data;

        if (t->phase < TERMINATING)
                /* The time for leftovers to end, or for an order of the head, is over. */
                node_attempt_stop(t, MIN(t->stop.grace_ms, (uint32_t)LEFTOVER_GRACE_MS));
        else if (t->phase == TERMINATING)
                node_attempt_kill(t);
        else
                drop_held_workers(t);
}

void node_attempt_linger(struct node_attempt *t)
{
        t->phase = LINGERING;
        uv_timer_start(&t->timers.grace, on_grace_over, LINGER_MS, 0);
}

void node_attempt_stop_unless_ordered(struct node_attempt *t)
{
        if (t->phase == RUNNING)
                uv_timer_start(&t->timers.grace, on_grace_over, MSG_LOST_GRACE_MS, 0);
}

/* --- orders ----------------------------------------------------------------------------------- */

void node_attempt_on_signal(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        uint32_t signo;

        if (number_decode(&signo, f, NULL) < 0 || signo >= NSIG)
                return;
        /* Number 0: the head knows of the signal reported by the agent, and decides itself. */
        if (signo)
                node_attempt_signal(t, (int)signo);
        else if (t->phase == RUNNING) /* node_attempt_stop_unless_ordered() */
                uv_timer_stop(&t->timers.grace);
}

void node_attempt_on_signal_ranks(void *attempt, const struct frame *f)
{
        struct ranks_signal m;

        if (ranks_signal_decode(&m, f, NULL) == 0 && m.signo < NSIG)
                node_attempt_signal_ranks(attempt, &m);
}

void node_attempt_on_stop(void *attempt, const struct frame *f)
{
        uint32_t grace_ms;

        if (number_decode(&grace_ms, f, NULL) == 0)
                node_attempt_stop(attempt, grace_ms);
}

void node_attempt_on_credit(void *attempt, const struct frame *f)
{
        struct credit m;
        struct worker *w;

        if (credit_decode(&m, f, NULL) < 0)
                return;
        /* Credit may come late, for a rank that has been dropped to start again: the world keeps
         * the account. */
        w = node_attempt_find_rank(attempt, m.rank);
        if (w)
                worker_credit(w, m.stream, m.bytes);
        else
                rank_world_credit(node_attempt_find_world(attempt, m.rank), &m);
}

void node_attempt_on_stdin(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        struct output m;

        if (rank_bytes_decode(&m, f, NULL) < 0)
                return;
        for (size_t i = 0; i < t->n_workers; i++)
                if (m.rank == MSG_EVERY_RANK || m.rank == t->workers[i]->rank)
                        worker_stdin(t->workers[i], m.data, m.len);
}

void node_attempt_on_resize(void *attempt, const struct frame *f)
{
        struct launch_terminal m;
        struct worker *w;

        if (launch_terminal_decode(&m, f, NULL) < 0)
                return;
        w = node_attempt_find_rank(attempt, m.rank);
        if (w)
                worker_resize(w, &m);
}

/* --- children --------------------------------------------------------------------------------- */

static void on_reaping(uv_timer_t *timer)
{
        node_attempt_reap(timer->data);
}

/* Reaps at most REAP_MAX children: processes that fork in a loop can die as fast as the agent
 * reaps, and timers must be served. Orphans of a dead child have become children of the agent
 * before the death is reported. */
void node_attempt_reap(struct node_attempt *t)
{
        int status, left = REAP_MAX;
        struct worker *w;
        pid_t pid;

        while (left > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                left--;
                w = find_worker(t, pid);
                if (w && !w->started) {
                        /* A failed exec ends the child as well, and then destroys the worker. */
                        node_attempt_confirm_starts(t, 0);
                        w = find_worker(t, pid);
                }
                if (!w) {
                        inspection_reaped(t->inspection, pid);
                        warm_reaped(t->warm, pid, status);
                        t->ops.other_reaped(t->ops.ctx, pid, status);
                        continue;
                }
                w->reaped = true;
                w->ended_ns = uv_hrtime();
                t->n_alive--;
                node_attempt_report_exit(t, w, status);
        }
        if (!left) /* with 0 some versions of libuv fire before the loop turns */
                uv_timer_start(&t->timers.reaping, on_reaping, 1, 0);
        if (t->phase == KILLING)
                /* Processes may have forked since the last kill. */
                contain_kill(&t->contain);
}

/* Helpers of PMIx are the attempt's own, and the agent knows the other parts. */
static bool any_other_process(void *ctx)
{
        const struct node_attempt *t = ctx;

        for (size_t i = 0; i < t->groups.n; i++)
                if (t->groups.v[i]->pmix.service)
                        return true;
        return warm_any(t->warm) || t->ops.any_other(t->ops.ctx);
}

static bool is_other_process(void *ctx, pid_t pid)
{
        const struct node_attempt *t = ctx;

        for (size_t i = 0; i < t->groups.n; i++)
                if (t->groups.v[i]->pmix.service &&
                    pmix_service_pid(t->groups.v[i]->pmix.service) == pid)
                        return true;
        return warm_have(t->warm, pid) || t->ops.is_other(t->ops.ctx, pid);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static bool is_mpi_unused(void *ctx, uint32_t rank)
{
        const struct node_attempt *t = ctx;

        return rank_world_is_mpi_unused(node_attempt_find_world(t, rank), rank);
}

struct node_attempt *node_attempt_create(const struct node_attempt_deps *deps,
                                         const struct node_attempt_ops *ops)
{
        struct node_attempt *t = xcalloc(1, sizeof(*t));
        uv_timer_t *const timers[] = { &t->timers.grace,    &t->timers.reaping, &t->timers.recheck,
                                       &t->timers.starting, &t->timers.again,   &t->stop.step };

        *t = (struct node_attempt){
                .deps = *deps, .ops = *ops, .contain = CONTAIN_INIT, .dumps = dump_sender_create()
        };
        t->contain.others = (struct contain_others){ any_other_process, is_other_process, t };
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
                uv_timer_init(deps->loop, timers[i]);
                timers[i]->data = t;
        }
        t->libraries = library_watch_create(deps->loop, deps->up);
        t->worlds = world_watch_create(deps->loop, is_mpi_unused, t);
        t->inspection = inspection_create(deps->loop, deps->up);
        t->warm = warm_create(deps->loop, deps->up);
        t->node.binding = xcalloc(1, sizeof(*t->node.binding));
        t->node.binding->ask_driver = node_facts_ask_holders;
        return t;
}

enum { MAX_NODE_GPUS = 1024 };

/* Addresses by index of the driver; "" for indexes that no GPU has. */
static void note_addresses(struct strv *to, const struct msg_gpu *gpus, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                while (to->n <= gpus[i].index && to->n < MAX_NODE_GPUS)
                        strv_push(to, "");
                if (gpus[i].index >= to->n)
                        continue;
                free(to->v[gpus[i].index]);
                to->v[gpus[i].index] = xstrdup(gpus[i].address);
        }
}

void node_attempt_set_node(struct node_attempt *t, const struct hello *h)
{
        t->node.cores = h->cores;
        t->node.has_gpus = h->n_gpus > 0;
        note_addresses(&t->node.binding->gpus, h->gpus, h->n_gpus);
        note_addresses(&t->node.binding->gpus, h->hidden, h->n_hidden);
}

bool node_attempt_is_idle(const struct node_attempt *t)
{
        return t->phase == IDLE;
}

bool node_attempt_may_start(const struct node_attempt *t, const struct launch_order *l)
{
        if (node_attempt_is_again(t, l))
                return true;
        for (size_t i = 0; i < t->groups.n; i++)
                if (rank_world_overlaps(t->groups.v[i], l->world.first, l->world_size))
                        return false;
        /* A world with ranks here must not get a second order. */
        return t->phase == IDLE || (t->phase == RUNNING && t->groups.more);
}

bool node_attempt_has_gpus(const struct node_attempt *t)
{
        return t->node.has_gpus;
}

struct node_ranks node_attempt_ranks(const struct node_attempt *t)
{
        return (struct node_ranks){ t->workers, t->n_workers };
}

const char *node_attempt_cwd(const struct node_attempt *t)
{
        return t->cwd;
}

void node_attempt_close(struct node_attempt *t)
{
        uv_timer_t *const timers[] = { &t->timers.grace,    &t->timers.reaping, &t->timers.recheck,
                                       &t->timers.starting, &t->timers.again,   &t->stop.step };

        node_attempt_drop_workers(t);
        rank_stop_end(t);
        library_watch_destroy(t->libraries);
        world_watch_destroy(t->worlds);
        inspection_close(t->inspection);
        dump_sender_close(t->dumps);
        warm_close(t->warm);
        node_attempt_drop_worlds(t);
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
                uv_close((uv_handle_t *)timers[i], NULL);
}

void node_attempt_destroy(struct node_attempt *t)
{
        contain_close(&t->contain);
        inspection_destroy(t->inspection);
        dump_sender_destroy(t->dumps);
        warm_destroy(t->warm);
        node_attempt_forget_ended(t);
        strv_finish(&t->node.binding->gpus);
        free(t->node.binding->taken);
        free(t->node.binding->driver);
        free(t->node.binding);
        free(t->cwd);
        free(t);
}
