/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the nodes about their ranks: tables and inspections for `hnlaunch why` and
 * Ctrl-\, samples for top; before a launch for the state of the nodes (`hnlaunch check`), between
 * two attempts for facts about a failure, and after the end for the core file of the first cause
 * and the traces. The last four turn the loop until the answers are there, or the timer @answer is
 * over.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "head/job/job_measure.h"
#include "head/job/job_private.h"
#include "head/options/program_options.h"
#include "head/pull/trace_fetch.h"
#include "head/status/rank_table_text.h"
#include "head/why/stack_text.h"
#include "wire/bind_msg.h"
#include "wire/check_msg.h"
#include "wire/push_msg.h"
#include "wire/status_msg.h"
#include "wire/warm_msg.h"

enum {
        TRACES_MS = 5000,     /* for the traces of all nodes */
        CORE_MS = 5000,       /* for a tool that reads a core file */
        CORE_SLACK_MS = 1000, /* for the answer besides */
        FACTS_MS = 5000,      /* of all nodes about a failure */
        LISTEN_MS = 3000,     /* of all nodes that are to listen for peers */
        MEASURE_MS = 5000,    /* of all nodes, beside the time of a peer */
        STAGE_MS = 600000,    /* of all nodes, which may remove many files */
        CHECK_MS = 10000,     /* of all nodes; the driver of GPUs may need 4 s of it */
};

/* --- while the ranks run ---------------------------------------------------------------------- */

bool job_take_table(struct job *j, void (*take)(void *ctx, const struct rank_table *t), void *ctx)
{
        return job_status_take_table(j->status, take, ctx);
}

/* The highest number is kept: an answer with a higher number fails the node. */
bool job_inspect(struct job *j, size_t node, const struct inspect_order *o)
{
        struct node *n = &j->cluster->nodes[node];

        if (n->state != NODE_RUNNING)
                return false;
        j->orders.inspections = MAX(j->orders.inspections, o->number);
        inspect_order_encode(&n->out, o);
        node_flush(n);
        return true;
}

/* Nodes connected or ordered later get the interval with the order (job_launch.c). A GONE node may
 * have ranks of the next attempt, and would keep the old interval. */
void job_sample(struct job *j, uint32_t interval_ms)
{
        j->orders.samples_ms = interval_ms;
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (n->state != NODE_READY && n->state != NODE_RUNNING &&
                    (n->state != NODE_GONE || n->ended))
                        continue;
                number_encode(&n->out, MSG_SAMPLE, interval_ms);
                node_flush(n);
        }
}

int job_take_ras(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct ras_reply m;
        bool valid;

        if (ras_reply_decode(&m, f, err) < 0)
                return -EPROTO;
        valid = m.number && m.number <= j->orders.inspections;
        if (valid && j->config->why.ras)
                j->config->why.ras(j->config->why.ctx, n->index, &m);
        ras_reply_finish(&m);
        return valid ? 0 : err_set(err, EPROTO, "message out of turn: RAS without a request");
}

/* A node must not speak for the ranks of another. */
int job_take_sample(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        const struct plan *plan = j->attempt->plan;
        struct sample m;
        bool valid = plan;

        if (sample_decode(&m, f, err) < 0)
                return -EPROTO;
        for (uint32_t i = 0; i < m.n_ranks && valid; i++)
                valid = m.ranks[i].rank < (uint64_t)plan->world_size &&
                        plan->ranks[m.ranks[i].rank].node == n->index;
        if (valid && j->config->samples.take)
                j->config->samples.take(j->config->samples.ctx, n->index, &m);
        sample_finish(&m);
        return valid ? 0 : err_set(err, EPROTO, "message out of turn: SAMPLED of a foreign rank");
}

void job_begin_look(struct job *j)
{
        job_status_ask(j->status);
}

bool job_still_hangs(struct job *j, const struct intlist *worlds, bool tell)
{
        return job_status_hangs(j->status, worlds, tell);
}

enum why_share job_look_share(const struct job *j, int world, bool unasked)
{
        return job_status_share(j->status, world, unasked);
}

json_t *job_describe_waits(const struct job *j)
{
        return job_roles_describe_waits(j->roles);
}

void job_dumping(struct job *j, bool on)
{
        job_status_dumping(j->status, on);
}

int64_t job_hang_ms(const struct job *j)
{
        return job_status_hang_ms(j->status);
}

/* --- the core file ---------------------------------------------------------------------------- */

/* The signals with the action "Core" in signal(7). */
static bool dumps_core(int signo)
{
        static const int signals[] = { SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                       SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS };

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                if (signals[i] == signo)
                        return true;
        return false;
}

/* Whether faulthandler of Python has told where the rank was. */
static bool has_told_stack(const struct job *j, int rank)
{
        CLEANUP(free_textp) char *words = attempt_last_words(j->attempt, rank, MSG_STDERR);

        return strstr(words, "Fatal Python error: ") && strstr(words, "(most recent call first)");
}

/* The first answer counts. The path of the core file comes in the field of a rank's wait. */
static void keep_core_file(struct job *j, const struct inspected *m)
{
        struct core_found *core = &j->attempt->core;
        CLEANUP(free_textp) char *where = NULL;
        struct stack s;

        if (!core->waits)
                return;
        core->waits = false;
        stack_parse(&s, m->stack ? m->stack : "");
        where = stack_crash(&s);
        stack_finish(&s);
        snprintf(core->file, sizeof(core->file), "%s", m->blocked);
        snprintf(core->where, sizeof(core->where), "%s", where);
        snprintf(core->problem, sizeof(core->problem), "%s", m->problem);
}

/* A number above the last request's is out of turn. */
int job_take_inspected(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        const struct plan *plan = j->attempt->plan;
        struct inspected m;
        bool valid;

        if (inspected_decode(&m, f, err) < 0)
                return -EPROTO;
        valid = m.number && m.number <= j->orders.inspections &&
                (m.rank == UINT32_MAX || (plan && m.rank < (uint32_t)plan->world_size));
        if (valid && m.number == j->attempt->core.number)
                keep_core_file(j, &m);
        else if (valid && j->config->why.inspected)
                j->config->why.inspected(j->config->why.ctx, n->index, &m);
        inspected_finish(&m);
        return valid ? 0 : err_set(err, EPROTO, "message out of turn: INSPECTED without a request");
}

/* The agent has had the time of its tool and a second for the answer: the report goes without. */
static void on_core_over(uv_timer_t *t)
{
        struct job *j = t->data;

        j->attempt->core.waits = false;
}

/* Asks the node of the cause only, and only after a signal with a core dump. The limits of the job
 * end first, since the ranks have ended. */
void job_read_core(struct job *j)
{
        const struct cause *c = &j->attempt->outcome.cause;
        struct core_found *core = &j->attempt->core;
        struct node *n = c->node >= 0 ? &j->cluster->nodes[c->node] : NULL;
        struct inspect_order o = { .what = INSPECT_CORE,
                                   .n_ranks = 1,
                                   .ranks = (uint32_t[]){ (uint32_t)c->rank } };

        if (c->kind != CAUSE_SIGNAL || !dumps_core(c->signal) || j->attempt->state == JOB_ENDED ||
            !n || n->ended || (n->state != NODE_GONE && n->state != NODE_READY))
                return;
        /* With a stack from faulthandler only the path of the core file is worth a question. */
        o.limit_ms = has_told_stack(j, c->rank) ? 0 : CORE_MS;
        if (!o.limit_ms && !c->core)
                return;
        o.pid = c->pid;
        o.dumped = c->core;
        o.number = core->number = ++j->orders.inspections;
        core->waits = true;
        inspect_order_encode(&n->out, &o);
        node_flush(n);
        job_stop_limits(j);
        uv_timer_start(&j->timers.answer, on_core_over, CORE_MS + CORE_SLACK_MS, 0);
        uv_ref((uv_handle_t *)&j->timers.answer);
        while (core->waits && !n->ended && n->state != NODE_FAILED)
                uv_run(&j->loop, UV_RUN_ONCE);
        core->waits = false;
        uv_unref((uv_handle_t *)&j->timers.answer);
        uv_timer_stop(&j->timers.answer);
}

/* --- facts about a failure -------------------------------------------------------------------- */

/* Whether a node without running ranks can be asked. */
static bool has_agent(const struct node *n)
{
        return !n->ended && (n->state == NODE_GONE || n->state == NODE_READY);
}

/* An answer clears the number of its node. */
static bool lacks_facts(const struct job *j)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (j->asked->facts[i].number && has_agent(&j->cluster->nodes[i]))
                        return true;
        return false;
}

/* Adds the GPUs that the ranks of a node had: those of the plan, else all that they could see. */
static void add_gpus(struct inspect_order *o, const struct job *j, const struct node *n)
{
        const struct plan_node *p = &j->attempt->plan->nodes[n->index];
        size_t count = p->gpus.n ? p->gpus.n : n->hello.n_gpus;

        if (!p->n_ranks || !count)
                return;
        o->gpus = xcalloc(count, sizeof(*o->gpus));
        for (size_t i = 0; i < count; i++)
                o->gpus[o->n_gpus++] = p->gpus.n ? (uint32_t)p->gpus.v[i] : n->hello.gpus[i].index;
}

/* A node without a question keeps the number 0, and nothing is waited for there. The limit is the
 * age of the attempt: older facts do not count. */
static void ask_facts(struct job *j, struct node *n, uint32_t number, const char *path)
{
        struct inspect_order o = { .number = number, .what = INSPECT_FACTS };

        snprintf(o.path, sizeof(o.path), "%s", path);
        o.limit_ms = (uint32_t)MIN(attempt_age_ms(j->attempt), (uint64_t)UINT32_MAX);
        add_gpus(&o, j, n);
        if (*o.path || o.n_gpus) {
                j->asked->facts[n->index].number = number;
                inspect_order_encode(&n->out, &o);
                node_flush(n);
        }
        inspect_order_finish(&o);
}

int job_take_facts(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct node_facts *facts = j->asked ? j->asked->facts : NULL;
        struct node_facts m;

        if (node_facts_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!m.number || m.number > j->orders.inspections)
                return err_set(err, EPROTO, "message out of turn: FACTS without a request");
        if (facts && m.number == facts[n->index].number) {
                facts[n->index] = m;
                facts[n->index].number = 0;
        }
        return 0;
}

static void on_facts_over(uv_timer_t *t)
{
        uv_timer_stop(t); /* it is no longer active */
}

/* Runs the loop for @ms at most, while nodes owe answers. */
static void collect_answers(struct job *j, uint64_t ms, bool (*owes)(const struct job *j))
{
        uv_timer_start(&j->timers.answer, on_facts_over, ms, 0);
        uv_ref((uv_handle_t *)&j->timers.answer);
        while (owes(j) && uv_is_active((uv_handle_t *)&j->timers.answer))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_unref((uv_handle_t *)&j->timers.answer);
        uv_timer_stop(&j->timers.answer);
        j->asked = NULL;
}

void job_ask_facts(struct job *j, const char *path, struct node_facts *facts)
{
        uint32_t number = ++j->orders.inspections;
        struct job_asked asked = { .facts = facts };

        j->asked = &asked;
        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                if (has_agent(&j->cluster->nodes[i]))
                        ask_facts(j, &j->cluster->nodes[i], number, path);
        collect_answers(j, FACTS_MS, lacks_facts);
}

/* --- bindings of a plan ----------------------------------------------------------------------- */

/* Asks a node about its ranks of a world. */
static void ask_binding(struct job *j, struct node *n, int world,
                        const struct job_bind_wish *wishes)
{
        const struct options *o = j->config->options;
        const struct plan *plan = j->asked->plan;
        const struct plan_node *p = &plan->nodes[n->index];
        struct bind_query q = { .bind = o->bind ? o->bind : (char *)"auto",
                                .near_nic = o->near_nic };

        q.ranks = xcalloc((size_t)p->n_ranks, sizeof(*q.ranks));
        q.others = xcalloc((size_t)p->n_ranks, sizeof(*q.others));
        for (int i = 0; i < p->n_ranks; i++) {
                const struct plan_rank *r = &plan->ranks[p->ranks.v[i]];
                const struct job_bind_wish *w = &wishes[r->program];
                const struct bind_query_rank one = { (uint32_t)r->rank, w->threads,
                                                     (uint32_t *)r->gpus.v,
                                                     w->own_devices ? 0 : (uint32_t)r->gpus.n };

                /* Ranks of other worlds take a share of the cores without being asked about. */
                if (r->world != world && options_divides_cores(o, (size_t)r->program))
                        q.others[q.n_others++] = one;
                if (r->world != world || options_is_per_node(o, (size_t)r->program))
                        continue;
                j->asked->inventory[n->index].bindings[i].asked = true;
                q.ranks[q.n_ranks++] = one;
        }
        if (q.n_ranks)
                bind_query_encode(&n->out, &q);
        free(q.ranks);
        free(q.others);
        node_flush(n);
}

/* Takes the answer about a rank, which the plan must have on the node. */
static void take_binding(const struct job_asked *asked, int node, struct bound_rank *from)
{
        const struct plan_node *p = &asked->plan->nodes[node];

        for (int i = 0; i < p->n_ranks; i++) {
                struct plan_binding *to = &asked->inventory[node].bindings[i];

                if ((uint32_t)p->ranks.v[i] != from->rank || !to->asked)
                        continue;
                to->asked = false;
                to->cpus = STEAL(&from->cpus);
                to->why = *from->why ? xstrdup(from->why) : NULL;
                to->nics = STEAL(&from->nics);
                to->node = from->node <= INT32_MAX ? (int)from->node : -1;
        }
}

/* BOUND has no number: each BIND has an answer, and late answers are dropped. */
int job_take_bound(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct bound m;

        if (bound_decode(&m, f, err) < 0)
                return -EPROTO;
        if (j->asked && j->asked->inventory && j->asked->inventory[n->index].bindings)
                for (uint32_t i = 0; i < m.n_ranks; i++)
                        take_binding(j->asked, n->index, &m.ranks[i]);
        bound_finish(&m);
        return 0;
}

/* A node without ranks in the plan has no bindings. */
static bool owes_bindings(const struct job *j)
{
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                const struct plan_binding *b = j->asked->inventory[i].bindings;

                for (int k = 0; b && k < j->asked->plan->nodes[i].n_ranks; k++)
                        if (b[k].asked && has_agent(&j->cluster->nodes[i]))
                                return true;
        }
        return false;
}

void job_ask_bindings(struct job *j, const struct plan *plan, const struct job_bind_wish *wishes,
                      struct plan_inventory *inventory)
{
        struct job_asked asked = { .plan = plan, .inventory = inventory };

        j->asked = &asked;
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                if (!has_agent(&j->cluster->nodes[i]) || !plan->nodes[i].n_ranks)
                        continue;
                inventory[i].bindings =
                        xcalloc((size_t)plan->nodes[i].n_ranks, sizeof(*inventory[i].bindings));
                for (size_t world = 0; world < plan->n_worlds; world++)
                        ask_binding(j, &j->cluster->nodes[i], (int)world, wishes);
        }
        collect_answers(j, FACTS_MS, owes_bindings);
}

/* --- the state of the nodes (`hnlaunch check`) ---------------------------------------------------
 */

struct job_check {
        uint32_t number;
        struct checked *answers;
        bool *waits; /* by node: an answer is still to come */
};

/* An answer comes in parts, the last of them without @more. Parts add to the facts before. */
int job_take_checked(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_check *c = j->asked ? j->asked->check : NULL;
        struct checked m;

        if (checked_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!m.number || m.number > j->orders.inspections) {
                checked_finish(&m);
                return err_set(err, EPROTO, "message out of turn: CHECKED without a request");
        }
        if (c && m.number == c->number && c->waits[n->index]) {
                struct checked *to = &c->answers[n->index];
                uint32_t more = MIN(m.n_facts, CHECK_FACTS_MAX - to->n_facts);

                if (more) {
                        to->facts = xrealloc(to->facts, to->n_facts + more, sizeof(*to->facts));
                        memcpy(&to->facts[to->n_facts], m.facts, more * sizeof(*to->facts));
                        to->n_facts += more;
                }
                c->waits[n->index] = m.more;
        }
        checked_finish(&m);
        return 0;
}

/* A failure in the outcome is an order to end here, as no ranks run: the wait ends. */
static bool lacks_checks(const struct job *j)
{
        for (size_t i = 0; !outcome_failed(&j->attempt->outcome) && i < j->cluster->n_nodes; i++)
                if (j->asked->check->waits[i] && has_agent(&j->cluster->nodes[i]))
                        return true;
        return false;
}

/* The answer to a ping comes before the facts, and tells the offset of the node's clock. */
static void ask_check(struct job *j, struct node *n, const struct check_order *o)
{
        heartbeat_requested(j->heartbeat, n);
        check_order_encode(&n->out, o);
        node_flush(n);
        j->asked->check->waits[n->index] = true;
}

enum job_step job_check(struct job *j, const struct check_order *order,
                        const struct check_names *names, struct checked *answers)
{
        struct job_check c = { .number = ++j->orders.inspections,
                               .answers = answers,
                               .waits = xcalloc(j->cluster->n_nodes, sizeof(*c.waits)) };
        struct check_order o = *order;

        o.number = c.number;
        j->asked = &(struct job_asked){ .check = &c };
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                if (!has_agent(&j->cluster->nodes[i]) || answers[i].n_facts)
                        continue;
                if (names)
                        o.names = names[i];
                ask_check(j, &j->cluster->nodes[i], &o);
        }
        collect_answers(j, CHECK_MS + (o.run && *o.run ? CHECK_RUN_MS : 0), lacks_checks);
        free(c.waits);
        return outcome_failed(&j->attempt->outcome) ? JOB_INTERRUPTED : JOB_DONE;
}

/* --- staged folders (`hnlaunch stage`) -------------------------------------------------------- */

int job_take_staged(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct staged *to = j->asked && j->asked->staged ? &j->asked->staged[n->index] : NULL;
        struct staged m;

        if (staged_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!to || to->v) {
                staged_finish(&m);
                return 0;
        }
        *to = m;
        /* Also an empty list is an answer. */
        if (!to->v)
                to->v = xcalloc(1, sizeof(*to->v));
        return 0;
}

static bool lacks_staged(const struct job *j)
{
        for (size_t i = 0; !outcome_failed(&j->attempt->outcome) && i < j->cluster->n_nodes; i++)
                if (!j->asked->staged[i].v && has_agent(&j->cluster->nodes[i]))
                        return true;
        return false;
}

enum job_step job_stage(struct job *j, const struct stage_order *order, struct staged *answers)
{
        j->asked = &(struct job_asked){ .staged = answers };
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (!has_agent(n))
                        continue;
                stage_order_encode(&n->out, order);
                node_flush(n);
        }
        collect_answers(j, STAGE_MS, lacks_staged);
        return outcome_failed(&j->attempt->outcome) ? JOB_INTERRUPTED : JOB_DONE;
}

/* --- connections between nodes (`hnlaunch check`) -----------------------------------------------
 */

/* All orders of a measure use the counter of inspections; job_measure_take() drops late answers. */
int job_take_measured(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_measure *to = j->asked ? j->asked->measure : NULL;
        struct measured m;
        int r = 0;

        if (measured_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!m.number || m.number > j->orders.inspections)
                r = err_set(err, EPROTO, "message out of turn: MEASURED without an order");
        else if (to && !job_measure_take(to, (size_t)n->index, &m))
                r = err_set(err, EPROTO, "malformed MEASURED message: %u results", m.n_results);
        measured_finish(&m);
        return r;
}

int job_take_warmed(struct job *j UNUSED, struct node *n, const struct frame *f, struct error *err)
{
        struct warmed m;

        if (warmed_decode(&m, f, err) < 0)
                return -EPROTO;
        if (*m.text)
                log_line(LOG_INFO, "%s: no interpreter is prepared: %s", n->host->name, m.text);
        return 0;
}

static bool lacks_measures(const struct job *j)
{
        return !outcome_failed(&j->attempt->outcome) && job_measure_owes(j->asked->measure);
}

/* Nodes without an answer take no part in later rounds, so only a single round waits for them. */
static enum job_step await_measures(struct job *j, struct job_measure *m, uint64_t ms)
{
        j->asked = &(struct job_asked){ .measure = m };
        collect_answers(j, ms, lacks_measures);
        job_measure_give_up(m);
        return outcome_failed(&j->attempt->outcome) ? JOB_INTERRUPTED : JOB_DONE;
}

enum job_step job_measure_begin(struct job *j, const struct pairs_nccl *nccl,
                                struct job_measure **ret)
{
        *ret = job_measure_create(j->cluster, nccl);
        job_measure_order_listen(*ret, ++j->orders.inspections, true);
        return await_measures(j, *ret, LISTEN_MS);
}

enum job_step job_measure_pairs(struct job *j, struct job_measure *m, struct check_pair *pairs,
                                size_t n, uint32_t timeout_ms, bool measure)
{
        job_measure_order_pairs(m, ++j->orders.inspections, pairs, n, timeout_ms, measure);
        return await_measures(j, m, timeout_ms + MEASURE_MS + job_measure_pair_ms(m));
}

/* The answers are not waited for: without a measure they are dropped. */
void job_measure_end(struct job *j, struct job_measure *m)
{
        job_measure_order_listen(m, ++j->orders.inspections, false);
        job_measure_free(m);
}

/* --- traces ------------------------------------------------------------------------------------
 */

/* Does nothing while the answer to an earlier request is under way. */
void job_ask_traces(struct job *j)
{
        const struct plan *plan = j->attempt->plan;
        struct trace_fetch *t = j->config->traces;

        if (!t || trace_fetch_waits(t))
                return;
        trace_fetch_begin(t, (size_t)plan->num_nodes);
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (!plan->nodes[i].n_ranks || n->ended || n->state < NODE_READY ||
                    n->state == NODE_FAILED)
                        continue;
                trace_fetch_ask(t, n);
                node_flush(n);
        }
}

/* Gives up the traces still missing: both waits of job_fetch_traces() end. */
static void on_traces_over(uv_timer_t *t)
{
        struct job *j = t->data;

        trace_fetch_cancel(j->config->traces);
}

static void await_traces(struct job *j)
{
        while (trace_fetch_waits(j->config->traces))
                uv_run(&j->loop, UV_RUN_ONCE);
}

/* A request under way is waited for first, since job_ask_traces() would do nothing meanwhile. */
void job_fetch_traces(struct job *j)
{
        if (!j->config->traces || j->attempt->state == JOB_ENDED)
                return;
        job_stop_limits(j);
        j->orders.fetching = true;
        uv_timer_start(&j->timers.answer, on_traces_over, TRACES_MS, 0);
        uv_ref((uv_handle_t *)&j->timers.answer);
        await_traces(j); /* of a request before */
        job_ask_traces(j);
        await_traces(j);
        uv_unref((uv_handle_t *)&j->timers.answer);
        uv_timer_stop(&j->timers.answer);
        j->orders.fetching = false;
}
