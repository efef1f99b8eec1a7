/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to the head about ranks that may hang.
 *
 * A STATUS is put together from three sources: one walk over /proc (state and processor time of
 * each worker's session), the kernel's socket tables (which rank holds which connection to the TCP
 * endpoint, on whatever node), and the endpoints of this node (the wait of each client). Clients of
 * the Unix socket are known by rank, clients of the TCP endpoint only by address and port, so the
 * head joins the latter with the ports reported by the ranks' own nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/attempt/node_attempt_private.h"
#include "agent/attempt/warm_env.h"
#include "agent/check/node_check.h"
#include "agent/core/sockdiag.h"
#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/store_access.h"
#include "agent/pmi/pmi_link.h"
#include "agent/pmix/pmix_service.h"
#include "agent/rank/limits.h"
#include "agent/rank/rank_status.h"
#include "base/memory.h"
#include "store/relay/relay.h"
#include "wire/store_msg.h"

/* The answer, while in the making. */
struct status_answer {
        struct node_status m;
        const struct rank_world *world; /* that is being asked */
        size_t conns_cap;
        uint64_t now_ns;
};

/* 0 = the event has not happened: STATUS_NEVER. Ages above 49 days are cut. */
static uint32_t get_age_ms(uint64_t since_ns, uint64_t now_ns)
{
        if (!since_ns)
                return STATUS_NEVER;
        return (uint32_t)MIN((now_ns - MIN(since_ns, now_ns)) / 1000000,
                             (uint64_t)STATUS_NEVER - 1);
}

/* --- clients ---------------------------------------------------------------------------------- */

/* An empty op: the client waits for nothing. A long key is cut, with room for the dots. */
static struct node_status_wait get_client_wait(const struct relay_client *c, uint64_t now_ns)
{
        struct node_status_wait w = { 0 };
        struct relay_pending p;
        const char *key;

        if (!relay_client_pending(c, &p))
                return w;
        snprintf(w.op, sizeof(w.op), "%s", store_op_name(p.op));
        key = KEY_FORMAT(p.key);
        snprintf(w.key, sizeof(w.key), "%.92s%s", key, strlen(key) > 92 ? "..." : "");
        w.n_keys = p.n_keys;
        w.ms = get_age_ms(p.since_ns, now_ns);
        return w;
}

/* Adds a connection of a rank. A rank may have several; the longest wait is reported. */
static void add_client_status(void *ctx, const struct relay_client *c, uint32_t rank)
{
        struct status_answer *a = ctx;

        for (uint32_t i = 0; i < a->m.n_ranks; i++) {
                struct node_status_rank *k = &a->m.ranks[i];
                struct node_status_wait w = get_client_wait(c, a->now_ns);

                if (k->rank != rank)
                        continue;
                k->said_ms = MIN(k->said_ms, get_age_ms(relay_client_seen(c), a->now_ns));
                k->seen_ms = MIN(k->seen_ms, k->said_ms);
                if (*w.op && (!*k->wait.op || w.ms > k->wait.ms))
                        k->wait = w;
        }
}

static struct node_status_rank *find_rank_status(const struct status_answer *a, uint32_t rank)
{
        for (uint32_t i = 0; i < a->m.n_ranks; i++)
                if (a->m.ranks[i].rank == rank)
                        return &a->m.ranks[i];
        return NULL;
}

/* The names of requests to the store are the words of the messages about waits. */
static void set_rank_wait(struct node_status_rank *k, const char *op, const char *key, uint32_t ms)
{
        if (*k->wait.op)
                return;
        snprintf(k->wait.op, sizeof(k->wait.op), "%s", op);
        snprintf(k->wait.key, sizeof(k->wait.key), "%s", key);
        k->wait.n_keys = 1;
        k->wait.ms = ms;
}

/* A call of PMI is a sign of life, like a request to the store. Numbers of PMI count within the
 * world. */
static void add_pmi_status(void *ctx, const struct pmi_link_state *state)
{
        struct status_answer *a = ctx;
        struct node_status_rank *k = find_rank_status(a, a->world->first + state->rank);
        uint32_t age_ms = get_age_ms(state->heard_ns, a->now_ns);

        if (!k)
                return;
        k->said_ms = MIN(k->said_ms, age_ms);
        k->seen_ms = MIN(k->seen_ms, age_ms);
        if (state->waits_for)
                set_rank_wait(k, state->waits_for, "PMI", age_ms);
}

static void add_pmix_wait(void *ctx, uint32_t rank, uint64_t since_ns)
{
        struct status_answer *a = ctx;
        struct node_status_rank *k = find_rank_status(a, a->world->first + rank);

        if (k)
                set_rank_wait(k, "BARRIER", "PMIx", get_age_ms(since_ns, a->now_ns));
}

/* A client of the TCP endpoint has no rank yet: the head finds the rank by address and port. */
static void add_tcp_peer(void *ctx, const struct endpoint_tcp_peer *peer)
{
        struct status_answer *a = ctx;
        struct node_status_conn *c;

        a->m.conns = xgrow(a->m.conns, a->m.n_conns, &a->conns_cap, sizeof(*a->m.conns));
        c = &a->m.conns[a->m.n_conns++];
        *c = (struct node_status_conn){ .port = peer->port,
                                        .seen_ms = get_age_ms(relay_client_seen(peer->client),
                                                              a->now_ns),
                                        .wait = get_client_wait(peer->client, a->now_ns) };
        snprintf(c->addr, sizeof(c->addr), "%s", peer->addr);
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* Finds the ranks of this node with connections to the TCP endpoint, on whatever node. */
static void add_rank_ports(const struct rank_world *w, struct node_status *m)
{
        struct sockdiag_conns conns = SOCKDIAG_CONNS_INIT;
        struct sockdiag d = SOCKDIAG_INIT;
        const struct sockaddr *master = store_access_master(w->store);
        struct error err;

        if (!master)
                return;
        sockdiag_open(&d);
        if (sockdiag_towards(&d, master, &conns, &err) == 0)
                for (uint32_t i = 0; i < m->n_ranks && conns.n; i++)
                        if (m->ranks[i].state && rank_world_has(w, m->ranks[i].rank))
                                m->ranks[i].n_ports = (uint32_t)sockdiag_ports_of(
                                        &conns, (pid_t)m->ranks[i].pid, m->ranks[i].ports,
                                        STATUS_PORTS);
        sockdiag_conns_finish(&conns);
        sockdiag_close(&d);
}

/* Fills in the facts of the kernel; said_ms and the waits come from the store afterwards. */
static void add_rank_statuses(const struct node_attempt *t, struct status_answer *to)
{
        struct rank_status_scan scan;

        rank_status_scan(&scan);
        to->m.n_ranks = (uint32_t)t->n_workers;
        to->m.ranks = xcalloc(t->n_workers, sizeof(*to->m.ranks));
        for (uint32_t i = 0; i < to->m.n_ranks; i++) {
                struct node_status_rank *k = &to->m.ranks[i];
                const struct worker *w = t->workers[i];

                k->rank = w->rank;
                k->local_rank = i; /* the order of LAUNCH */
                k->pid = (uint32_t)w->pid;
                k->said_ms = STATUS_NEVER;
                k->seen_ms = get_age_ms(worker_heard_ns(w), to->now_ns);
                if (!w->reaped)
                        rank_status_look(&scan, w->pid, k);
        }
        rank_status_scan_finish(&scan);
}

static bool has_any_joined(const struct node_status *m)
{
        for (uint32_t i = 0; i < m->n_ranks; i++)
                if (m->ranks[i].n_ports || m->ranks[i].said_ms != STATUS_NEVER)
                        return true;
        return false;
}

/* Fills in what the store and MPI know of the ranks of a world. */
static void add_world_status(const struct rank_world *w, struct status_answer *to)
{
        const struct endpoint_tcp *tcp = store_access_tcp(w->store);

        to->world = w;
        add_rank_ports(w, &to->m);
        store_access_each_local(w->store, add_client_status, to);
        if (w->pmi)
                pmi_link_each(w->pmi, add_pmi_status, to);
        if (w->pmix.service)
                pmix_service_each_wait(w->pmix.service, add_pmix_wait, to);
        if (!tcp)
                return;
        endpoint_tcp_each(tcp, add_tcp_peer, to);
        to->m.rejected += endpoint_tcp_rejected(tcp);
}

void node_attempt_on_status_request(void *attempt, const struct frame *f)
{
        const struct node_attempt *t = attempt;
        struct status_answer to = { .now_ns = uv_hrtime() };

        const struct sockaddr *master;

        if (number_decode(&to.m.number, f, NULL) < 0)
                return;
        add_rank_statuses(t, &to);
        for (size_t i = 0; i < t->groups.n; i++)
                add_world_status(t->groups.v[i], &to);
        /* Ranks without a connection to the job's store may have reached the store of another
         * job. */
        master = t->groups.n == 1 ? store_access_master(t->groups.v[0]->store) : NULL;
        /* With several worlds each has a store of its own, and another MASTER_PORT is no sign of a
         * mistake. */
        if (t->n_alive && master && !has_any_joined(&to.m))
                other_store_find(&to.m.other, t->contain.mark, sockdiag_port(master));
        node_status_encode(&t->deps.up->out, &to.m);
        node_status_finish(&to.m);
}

/* --- BIND ------------------------------------------------------------------------------------- */

void node_attempt_on_bind(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        struct order_binding *b;
        struct near_nics nics;
        struct bind_query q;
        struct bound m;

        if (bind_query_decode(&q, f, NULL) < 0)
                return;
        /* Cores noted as taken by this query are forgotten when the first order of an attempt
         * begins. */
        b = order_binding_create(&q, t->node.binding, false);
        near_nics_find(&nics, &q, &t->node.binding->gpus, "/sys");
        order_binding_describe(b, &nics, &q, &m);
        bound_encode(&t->deps.up->out, &m);
        bound_finish(&m);
        order_binding_destroy(b);
        near_nics_finish(&nics);
        bind_query_finish(&q);
}

/* --- WARM ------------------------------------------------------------------------------------- */

static int raise_warm_limits(void *ctx UNUSED)
{
        limits_raise_worker();
        return 0;
}

void node_attempt_on_warm(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        struct warm_order m;
        struct error err;

        if (warm_order_decode(&m, f, &err) < 0) {
                warm_refuse(t->warm, err.text);
                return;
        }
        if (t->phase == IDLE) {
                warm_env_build(&env, &m, t->node.binding, t->node.cores, t->node.has_gpus);
                warm_prepare(t->warm, &m, &env, raise_warm_limits);
        } else {
                warm_refuse(t->warm, "ranks run on this node");
        }
        warm_order_finish(&m);
}

/* --- INSPECT ---------------------------------------------------------------------------------- */

/* 0 = no process: the program is not executed yet, or the rank has ended. */
static pid_t living_pid(const struct worker *w)
{
        return w->reaped || !w->started ? 0 : w->pid;
}

/* RAS without ranks means all worlds. Stacks, core files and facts name their processes. */
static bool is_of_all_ranks(const struct inspect_order *o)
{
        return o->what == INSPECT_RAS ? !o->n_ranks
                                      : o->what != INSPECT_STACKS && o->what != INSPECT_CORE &&
                                                o->what != INSPECT_FACTS;
}

/* In a process namespace the numbers of processes differ from the numbers in core files. */
static void refuse_core(const struct node_attempt *t, const struct inspect_order *o)
{
        struct inspected m = { .number = o->number, .rank = o->ranks[0] };

        snprintf(m.problem, sizeof(m.problem), "with --contain pidns none is looked for");
        inspected_encode(&t->deps.up->out, &m);
}

void node_attempt_on_inspect(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        const struct inspector_paths paths = { t->deps.dir->pipes, t->deps.dir->dumps, t->cwd,
                                               t->ops.first_gpus(t->ops.ctx) };
        struct inspect_order o;
        struct inspector_rank *ranks;
        size_t n = 0;

        if (inspect_order_decode(&o, f, NULL) < 0)
                return;
        if (o.what == INSPECT_CORE && o.n_ranks && t->contain.pidns.keeper) {
                refuse_core(t, &o);
                inspect_order_finish(&o);
                return;
        }
        ranks = xcalloc(MAX(t->n_workers + t->stop.n_ended, (size_t)o.n_ranks), sizeof(*ranks));
        if (o.what == INSPECT_CORE && o.n_ranks)
                /* The rank has ended: its pid comes from the order, not from a worker. */
                ranks[n++] = (struct inspector_rank){ o.ranks[0], (pid_t)o.pid };
        for (size_t i = 0; is_of_all_ranks(&o) && i < t->n_workers; i++)
                ranks[n++] =
                        (struct inspector_rank){ t->workers[i]->rank, living_pid(t->workers[i]) };
        for (uint32_t k = 0; (o.what == INSPECT_STACKS || o.what == INSPECT_RAS) && k < o.n_ranks;
             k++) {
                const struct worker *w = node_attempt_find_rank(t, o.ranks[k]);

                if (w)
                        ranks[n++] = (struct inspector_rank){ w->rank, living_pid(w) };
        }
        for (size_t i = 0; o.what == INSPECT_FACTS && i < t->stop.n_ended; i++)
                ranks[n++] = t->stop.ended[i];
        inspection_start(t->inspection, &o, ranks, n, &paths);
        free(ranks);
        inspect_order_finish(&o);
}

void node_attempt_on_check(void *attempt, const struct frame *f)
{
        struct node_attempt *t = attempt;
        struct check_order o;

        if (check_order_decode(&o, f, NULL) < 0)
                return;
        inspection_start_check(t->inspection, node_check_run, &o);
        check_order_finish(&o);
}
