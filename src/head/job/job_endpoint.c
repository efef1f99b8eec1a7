/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job_endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strv.h"
#include "base/token.h"
#include "head/job/job_private.h"

enum {
        PROBE_MS = 10000, /* for an address to answer */
        SLACK_MS = 3000,  /* beyond that the agent itself is silent */
};

static bool takes_part(const struct job *j, size_t node)
{
        return j->plan->nodes[node].n_ranks > 0;
}

static const struct hello *first_hello(const struct job *j)
{
        return &j->nodes[j->endpoint.first].hello;
}

const struct job_endpoint *job_endpoint(const struct job *j)
{
        return &j->endpoint;
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Whatever address a rank of the job may come from. */
static void add_peers(struct strv *peers, const struct job *j)
{
        for (size_t i = 0; i < j->n_nodes; i++) {
                const struct hello *h = &j->nodes[i].hello;
                const char *given = j->nodes[i].host->addr;

                if (!takes_part(j, i))
                        continue;
                if (*h->ssh_addr)
                        strv_push(peers, h->ssh_addr);
                if (given && master_addr_is_numeric(given))
                        strv_push(peers, given);
                for (uint32_t k = 0; k < h->n_addrs && peers->n < ENDPOINT_PEERS_MAX - 2; k++)
                        if (strcmp(h->addrs[k].addr, h->ssh_addr) != 0)
                                strv_push(peers, h->addrs[k].addr);
                if (peers->n >= ENDPOINT_PEERS_MAX - 2)
                        return;
        }
}

static void send_endpoint(struct job *j, size_t node, const struct endpoint_order *m)
{
        endpoint_order_encode(node_out(&j->nodes[node]), m);
        j->endpoint.nodes[node].asked_endpoint = true;
        node_flush(&j->nodes[node]);
}

/* To the port where the endpoint is, or will be in a moment. */
static void send_probes(struct job *j)
{
        struct probe_order m = { .port = j->endpoint.port,
                                 .timeout_ms = (uint32_t)j->endpoint.timeout_ms };

        j->endpoint.answered = 0;
        memcpy(m.token, j->endpoint.token, sizeof(m.token));
        for (size_t c = 0; c < j->endpoint.candidates.n; c++)
                strv_push(&m.addrs, j->endpoint.candidates.v[c].addr);
        for (size_t i = 0; i < j->n_nodes; i++) {
                struct job_endpoint_node *d = &j->endpoint.nodes[i];

                if (i == j->endpoint.first || !takes_part(j, i))
                        continue;
                probe_order_encode(node_out(&j->nodes[i]), &m);
                d->asked_probe++;
                d->has_probed = false;
                node_flush(&j->nodes[i]);
        }
        strv_finish(&m.addrs);
}

/* --- answers ---------------------------------------------------------------------------------- */

int job_endpoint_opened(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_endpoint_node *d = j->endpoint.nodes ? &j->endpoint.nodes[n->index] : NULL;
        struct endpoint_opened m;

        if (endpoint_opened_decode(&m, f, err) < 0)
                return -err->code;
        if (!d || !d->asked_endpoint || d->endpoint_opened || m.port > UINT16_MAX)
                return err_set(err, EPROTO, "unrequested endpoint");
        d->endpoint_opened = xcalloc(1, sizeof(*d->endpoint_opened));
        *d->endpoint_opened = m;
        j->endpoint.refused |= !m.port;
        if (j->endpoint.mode == STORE_LISTEN_NETWORK && m.port && m.port != j->endpoint.port) {
                /* Somebody else had taken the port that we were told before. */
                j->endpoint.port = m.port;
                send_probes(j);
        }
        return 0;
}

int job_endpoint_probed(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct job_endpoint_node *d = j->endpoint.nodes ? &j->endpoint.nodes[n->index] : NULL;
        struct probed m;

        if (probed_decode(&m, f, err) < 0)
                return -err->code;
        if (!d || !d->asked_probe || m.n != j->endpoint.candidates.n) {
                probed_finish(&m);
                return err_set(err, EPROTO, "probe that nobody asked for");
        }
        d->asked_probe--;
        probed_finish(&d->probed);
        d->probed = m;
        d->has_probed = true;
        return 0;
}

bool job_endpoint_owes(const struct job *j, size_t node)
{
        const struct job_endpoint_node *d = j->endpoint.nodes ? &j->endpoint.nodes[node] : NULL;

        return d &&
               ((d->asked_endpoint && !d->endpoint_opened) || (d->asked_probe && !d->has_probed));
}

/* All who take part are still there. Looks again only when some node has failed since. */
static bool all_there(struct job *j)
{
        if (j->endpoint.failed_seen == j->failed)
                return true;
        for (size_t i = 0; i < j->n_nodes; i++)
                if (takes_part(j, i) && j->nodes[i].state != NODE_READY)
                        return false;
        j->endpoint.failed_seen = j->failed;
        return true;
}

static bool all_answered(struct job *j)
{
        while (j->endpoint.answered < j->n_nodes && !job_endpoint_owes(j, j->endpoint.answered))
                j->endpoint.answered++;
        return j->endpoint.answered == j->n_nodes;
}

/* Waiting makes sense: somebody owes an answer, and nothing has ended the launch. Asked in every
 * turn of the loop, so it must not look at every node. */
static bool waiting(struct job *j)
{
        return !outcome_failed(&j->outcome) && !j->endpoint.refused && all_there(j) &&
               !all_answered(j);
}

static void too_late(uv_timer_t *t)
{
        struct job *j = t->data;

        for (size_t i = 0; i < j->n_nodes; i++)
                if (job_endpoint_owes(j, i))
                        node_break(&j->nodes[i], LINK_TIMED_OUT,
                                   "its agent did not answer within %lld s",
                                   (long long)(j->endpoint.timeout_ms + SLACK_MS) / 1000);
}

/* 0 when all have answered; else what ended it, as job_open_endpoint(). */
static int await_answers(struct job *j)
{
        heartbeat_start(j); /* a cable may be cut now as well as later */
        uv_timer_start(&j->patience, too_late, (uint64_t)(j->endpoint.timeout_ms + SLACK_MS), 0);
        while (waiting(j))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->patience);
        if (outcome_failed(&j->outcome))
                return JOB_INTERRUPTED;
        if (!all_there(j))
                return -EHOSTUNREACH;
        return j->endpoint.refused ? -ENETUNREACH : 0;
}

/* --- the modes -------------------------------------------------------------------------------- */

static int find_candidates(struct job *j, struct error *err)
{
        const struct hello **nodes = xcalloc(j->n_nodes, sizeof(*nodes));
        size_t n = 0;
        int r;

        nodes[n++] = first_hello(j);
        for (size_t i = 0; i < j->n_nodes; i++)
                if (i != j->endpoint.first && takes_part(j, i))
                        nodes[n++] = &j->nodes[i].hello;
        r = master_addr_candidates(&j->endpoint.candidates, j->nodes[j->endpoint.first].host, nodes,
                                   n, j->c.options->iface, err);
        free(nodes);
        return r;
}

static int choose(struct job *j)
{
        const struct probed **v = xcalloc(j->n_nodes, sizeof(*v));
        size_t n = 0;

        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->endpoint.nodes[i].has_probed)
                        v[n++] = &j->endpoint.nodes[i].probed;
        j->endpoint.chosen = master_addr_pick(v, n, j->endpoint.candidates.n);
        free(v);
        return j->endpoint.chosen >= 0 ? 0 : -ENETUNREACH;
}

static void tell_network(const struct job *j, int64_t began_ns)
{
        const struct job_endpoint *d = &j->endpoint;
        uint32_t least = UINT32_MAX, most = 0;
        size_t n = 0;

        for (size_t i = 0; i < j->n_nodes; i++) {
                if (!d->nodes[i].has_probed)
                        continue;
                least = MIN(least, d->nodes[i].probed.results[d->chosen].us);
                most = MAX(most, d->nodes[i].probed.results[d->chosen].us);
                n++;
        }
        log_line(LOG_INFO,
                 "store at %s%s%s:%u, reached by %zu node%s in %.1f-%.1f ms (%.1f ms in all)",
                 strchr(d->candidates.v[d->chosen].addr, ':') ? "[" : "",
                 d->candidates.v[d->chosen].addr,
                 strchr(d->candidates.v[d->chosen].addr, ':') ? "]" : "", d->port, n,
                 n == 1 ? "" : "s", least / 1e3, most / 1e3, (double)(clock_ns() - began_ns) / 1e6);
}

static int open_network(struct job *j, struct error *err)
{
        struct job_endpoint *d = &j->endpoint;
        struct endpoint_order m = { .mode = ENDPOINT_NETWORK };
        int64_t began_ns = clock_ns();
        int r = find_candidates(j, err);

        if (r < 0)
                return r;
        if (!master_addr_is_numeric(d->candidates.v[0].addr))
                return err_set(err, EADDRNOTAVAIL, "addr=%s of %s does not resolve here",
                               d->candidates.v[0].addr, j->nodes[d->first].host->name);
        memcpy(m.token, d->token, sizeof(m.token));
        add_peers(&m.peers, j);
        send_endpoint(j, d->first, &m);
        strv_finish(&m.peers);
        /* The agent has promised this port, so nobody has to wait for its answer. */
        if (d->port)
                send_probes(j);
        r = await_answers(j);
        if (r == 0)
                r = choose(j);
        if (r == 0)
                tell_network(j, began_ns);
        return r;
}

static int open_loopback(struct job *j, struct error *err)
{
        const struct job_endpoint *d = &j->endpoint;
        struct endpoint_order m = { .mode = ENDPOINT_LOOPBACK };
        int64_t began_ns = clock_ns();
        int r;

        /* Not for MASTER_ADDR: the ranks' own traffic needs a network all the same. */
        if (j->plan->num_nodes > 1 && find_candidates(j, err) < 0)
                return -err->code;
        memcpy(m.token, d->token, sizeof(m.token));
        for (size_t i = 0; i < j->n_nodes; i++)
                if (takes_part(j, i))
                        send_endpoint(j, i, &m);
        r = await_answers(j);
        if (r == 0)
                log_line(LOG_INFO, "store at 127.0.0.1 on %d node%s (%.1f ms in all)",
                         j->plan->num_nodes, j->plan->num_nodes == 1 ? "" : "s",
                         (double)(clock_ns() - began_ns) / 1e6);
        return r;
}

/* As the ranks' own code expects it: on one node without any network, unless one is named. */
static int open_none(struct job *j, struct error *err)
{
        struct job_endpoint *d = &j->endpoint;
        int r = find_candidates(j, err);

        if (r == 0 && j->plan->num_nodes == 1 && !d->candidates.given)
                d->candidates =
                        (struct master_addr_list){ .v = { { .addr = "127.0.0.1" } }, .n = 1 };
        return r;
}

static void begin(struct job *j, const struct plan *plan)
{
        struct job_endpoint *d = &j->endpoint;
        size_t first = (size_t)plan->ranks[0].node;

        job_endpoint_finish(j);
        j->plan = plan;
        d->first = first;
        d->failed_seen = SIZE_MAX; /* not yet */
        /* Later attempts get another port, which the agent tells. */
        d->port = j->attempt && j->c.options->store_listen != STORE_LISTEN_NONE
                          ? 0
                          : first_hello(j)->free_port;
        token_make(d->token, ENDPOINT_TOKEN);
        d->timeout_ms = MAX(j->c.options->connect_timeout_ms, PROBE_MS);
        d->mode = j->c.options->store_listen;
        if (d->mode == STORE_LISTEN_NETWORK && plan->num_nodes == 1)
                d->mode = STORE_LISTEN_LOOPBACK;
        d->nodes = xcalloc(j->n_nodes, sizeof(*d->nodes));
}

int job_open_endpoint(struct job *j, const struct plan *plan, struct error *err)
{
        begin(j, plan);
        switch (j->endpoint.mode) {
        case STORE_LISTEN_NETWORK:
                return open_network(j, err);
        case STORE_LISTEN_LOOPBACK:
                return open_loopback(j, err);
        default:
                return open_none(j, err);
        }
}

void job_endpoint_finish(struct job *j)
{
        for (size_t i = 0; j->endpoint.nodes && i < j->n_nodes; i++) {
                probed_finish(&j->endpoint.nodes[i].probed);
                free(j->endpoint.nodes[i].endpoint_opened);
        }
        free(j->endpoint.nodes);
        j->endpoint = (struct job_endpoint){ 0 };
}

/* --- what a node's ranks are told ---------------------------------------------------------------
 */

static const char *iface_of(const struct job *j, size_t node)
{
        const struct job_endpoint *d = &j->endpoint;

        if (d->mode == STORE_LISTEN_NONE)
                return "";
        if (j->plan->num_nodes == 1)
                return "lo";
        if (d->mode == STORE_LISTEN_NETWORK && d->nodes[node].has_probed &&
            *d->nodes[node].probed.results[d->chosen].iface)
                return d->nodes[node].probed.results[d->chosen].iface;
        if (node == d->first)
                return d->candidates.v[d->chosen].iface;
        return master_addr_iface(&j->nodes[node].hello, &d->candidates.v[d->chosen]);
}

void job_endpoint_fill(const struct job *j, size_t node, struct launch_order *m)
{
        const struct job_endpoint *d = &j->endpoint;
        bool loopback = d->mode == STORE_LISTEN_LOOPBACK;

        m->agent_store = d->mode != STORE_LISTEN_NONE;
        m->master_port = loopback ? d->nodes[node].endpoint_opened->port : d->port;
        snprintf(m->master_addr, sizeof(m->master_addr), "%s",
                 loopback ? "127.0.0.1" : d->candidates.v[d->chosen].addr);
        snprintf(m->iface, sizeof(m->iface), "%s", iface_of(j, node));
}
