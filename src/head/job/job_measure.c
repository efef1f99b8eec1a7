/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each order has a new number, and only answers to the last count. Of a node the targets stand in
 * the order of its pairs, and so do the results. The addresses are listed for the order, and again
 * for a failed result, which names one by its place.
 */
#include "head/job/job_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/token.h"
#include "head/job/cluster.h"
#include "head/model/master_addr.h"

/* The best of the list; an order has MEASURE_ADDRS_MAX at most. */
enum { ADDRS = 4 }; /* of a node that are tried */

/* What was asked of a node. */
struct measure_node {
        uint32_t port; /* 0 = no port is open */
        char text[160];
        bool owes;
        size_t *pairs, n; /* indices, in the order of the targets */
};

struct job_measure {
        struct cluster *cluster;
        struct measure_node *nodes;
        uint32_t number; /* of the last order */
        struct check_pair *pairs;
        uint32_t timeout_ms;
        bool sends;                    /* else only whether peers answer */
        const struct pairs_nccl *nccl; /* NULL = TCP is measured */
        char token[ENDPOINT_TOKEN + 1];
};

/* The token keeps other connections from being measured: both ends of a pair know the token. */
struct job_measure *job_measure_create(struct cluster *c, const struct pairs_nccl *nccl)
{
        struct job_measure *m = xcalloc(1, sizeof(*m));

        m->cluster = c;
        m->nccl = nccl;
        m->nodes = xcalloc(c->n_nodes, sizeof(*m->nodes));
        token_make(m->token, ENDPOINT_TOKEN);
        return m;
}

/* The pairs belong to the caller. */
void job_measure_free(struct job_measure *m)
{
        for (size_t i = 0; i < m->cluster->n_nodes; i++)
                free(m->nodes[i].pairs);
        free(m->nodes);
        free(m);
}

/* Before the launch: a node with ranks would measure their traffic. */
static bool is_measurable(const struct node *n)
{
        return !n->ended && n->state == NODE_READY;
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Sends an order. Each order has an answer, so the node owes an answer from now on. */
static void send_measure(struct job_measure *m, size_t node, bool listen,
                         struct measure_target *targets, size_t n)
{
        struct measure_order o = { .number = m->number,
                                   .listen = listen,
                                   .timeout_ms = m->timeout_ms,
                                   .send_ms = JOB_MEASURE_MS,
                                   .send_bytes = m->sends ? JOB_MEASURE_BYTES : 0,
                                   .targets = targets,
                                   .n_targets = (uint32_t)n };

        /* The order borrows both. */
        if (m->sends && m->nccl)
                o.nccl = (struct measure_nccl){ (char *)m->nccl->libraries[node], m->nccl->env };
        memcpy(o.token, m->token, sizeof(o.token));
        measure_order_encode(&m->cluster->nodes[node].out, &o);
        node_flush(&m->cluster->nodes[node]);
        m->nodes[node].owes = true;
}

void job_measure_order_listen(struct job_measure *m, uint32_t number, bool listen)
{
        m->number = number;
        m->sends = true; /* what listeners send is up to those that connect */
        for (size_t i = 0; i < m->cluster->n_nodes; i++) {
                m->nodes[i].n = 0;
                if (is_measurable(&m->cluster->nodes[i]))
                        send_measure(m, i, listen, NULL, 0);
        }
}

/* Lists the addresses at which @p.from may find @p.to, best first. */
static void list_peer_addresses(const struct job_measure *m, const struct check_pair *p,
                                struct master_addr_list *to)
{
        const struct node *peer = &m->cluster->nodes[p->to];
        const struct hello *hellos[] = { &peer->hello, &m->cluster->nodes[p->from].hello };
        struct error err;

        if (master_addr_candidates(to, peer->host, hellos, 2, m->cluster->options->iface, &err) < 0)
                to->n = 0;
        to->n = MIN(to->n, (size_t)ADDRS);
}

/* Orders the node to connect to the peers of this round, and to go on listening meanwhile. */
static void order_node_pairs(struct job_measure *m, size_t node)
{
        struct measure_node *n = &m->nodes[node];
        struct measure_target *targets = xcalloc(n->n, sizeof(*targets));
        struct master_addr_list list;

        for (size_t i = 0; i < n->n; i++) {
                struct check_pair *p = &m->pairs[n->pairs[i]];

                list_peer_addresses(m, p, &list);
                targets[i].port = m->nodes[p->to].port;
                for (size_t k = 0; k < list.n; k++)
                        strv_push(&targets[i].addrs, list.v[k].addr);
        }
        send_measure(m, node, true, targets, n->n);
        for (size_t i = 0; i < n->n; i++)
                strv_finish(&targets[i].addrs);
        free(targets);
}

/* Pairs with a node that does not listen, and pairs beyond MEASURE_TARGETS_MAX of a node, stay
 * untold: in no order. */
void job_measure_order_pairs(struct job_measure *m, uint32_t number, struct check_pair *pairs,
                             size_t n, uint32_t timeout_ms, bool sends)
{
        m->number = number;
        m->pairs = pairs;
        m->timeout_ms = timeout_ms;
        m->sends = sends;
        for (size_t i = 0; i < m->cluster->n_nodes; i++)
                m->nodes[i].n = 0;
        for (size_t i = 0; i < n; i++) {
                struct measure_node *from = &m->nodes[pairs[i].from];

                pairs[i].told = false;
                if (!from->port || !m->nodes[pairs[i].to].port || from->n == MEASURE_TARGETS_MAX)
                        continue;
                from->pairs = xrealloc(from->pairs, from->n + 1, sizeof(*from->pairs));
                from->pairs[from->n++] = i;
        }
        for (size_t i = 0; i < m->cluster->n_nodes; i++) {
                if (!m->nodes[i].port || !is_measurable(&m->cluster->nodes[i]))
                        continue;
                if (m->nodes[i].n)
                        order_node_pairs(m, i);
                else if (sends)
                        send_measure(m, i, true, NULL, 0); /* to listen on, for many rounds */
        }
}

uint64_t job_measure_pair_ms(const struct job_measure *m)
{
        return m->sends && m->nccl ? MEASURE_NCCL_MS : 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

const char *job_measure_refusal(const struct job_measure *m, size_t node)
{
        const struct measure_node *n = &m->nodes[node];

        return n->port ? NULL : *n->text ? n->text : "the node has not answered in time";
}

const char *job_measure_failure(const struct job_measure *m, size_t node)
{
        return m->nodes[node].text;
}

bool job_measure_take(struct job_measure *m, size_t node, const struct measured *from)
{
        struct measure_node *n = &m->nodes[node];

        if (from->number != m->number || !n->owes)
                return true;
        if (from->n_results != n->n)
                return false;
        n->owes = false;
        /* Every answer repeats the port: an agent without its listener takes no further part. */
        n->port = from->port;
        snprintf(n->text, sizeof(n->text), "%s", from->text);
        for (size_t i = 0; i < n->n; i++) {
                struct check_pair *p = &m->pairs[n->pairs[i]];
                struct master_addr_list list;

                p->told = true;
                p->result = from->results[i];
                *p->addr = '\0';
                if (!p->result.error || p->result.error == MEASURE_NCCL_FAILED)
                        continue;
                /* Only messages name the address: most pairs need no second list. */
                list_peer_addresses(m, p, &list);
                snprintf(p->addr, sizeof(p->addr), "%s",
                         p->result.addr < list.n ? list.v[p->result.addr].addr : "");
        }
        return true;
}

void job_measure_give_up(struct job_measure *m)
{
        for (size_t i = 0; i < m->cluster->n_nodes; i++) {
                struct measure_node *n = &m->nodes[i];

                if (n->owes)
                        n->port = 0;
                n->owes = false;
        }
}

/* A node lost meanwhile is not waited for. */
bool job_measure_owes(const struct job_measure *m)
{
        for (size_t i = 0; i < m->cluster->n_nodes; i++)
                if (m->nodes[i].owes && is_measurable(&m->cluster->nodes[i]))
                        return true;
        return false;
}
