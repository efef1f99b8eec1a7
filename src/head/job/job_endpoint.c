/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_endpoint_open() sends the orders of the mode, then await_answers() runs the loop until every
 * participating node has answered, a node is lost, an agent cannot open an endpoint, or an order to
 * end comes. The heartbeat runs meanwhile, because a cable may be cut now as well.
 *
 * In network mode the agent of rank 0's node has promised a free port in HELLO. So the probes
 * are sent together with the order to open the endpoint, and only if the port was taken meanwhile
 * (or for a later attempt, which has no promise) are they sent (again) when ENDPOINT_OPENED tells
 * the port. Every order has one answer. The orders without an answer are counted for each node,
 * also across attempts: an answer to an earlier order is dropped.
 */
#include "head/job/job_endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strv.h"
#include "base/token.h"
#include "head/job/attempt.h"
#include "head/job/cluster.h"
#include "head/job/heartbeat.h"
#include "head/job/job.h"
#include "head/job/job_owners.h"

enum {
        PROBE_MS = 10000, /* for an address to answer */
        SLACK_MS = 3000,  /* then the agent counts as silent */
};

/* Orders to a node without an answer. */
struct endpoint_orders {
        unsigned endpoint, probe;
};

struct endpoint_setup {
        struct job_endpoint result;
        struct endpoint_orders *orders; /* by node */
        struct cluster *cluster;
        struct attempt *attempt;
        struct heartbeat *heartbeat;
        struct job_owners *owners;
        struct job_ports ports;
        uint32_t world;
        uv_timer_t timer;
        size_t answered;     /* all nodes before have */
        size_t failed_seen;  /* cluster->failed at the last look at each node */
        size_t kept_promise; /* 1 + the node that has used the port promised in HELLO; 0 = none */
        bool refused;        /* an agent could not open an endpoint */
};

static bool hosts_ranks(const struct endpoint_setup *s, size_t node)
{
        return plan_has_world(s->attempt->plan, node, s->world);
}

/* Whether the program of the world, such as torchrun, starts the ranks (--per-node). */
static bool is_per_node(const struct endpoint_setup *s)
{
        const struct plan *plan = s->attempt->plan;
        int program = plan->ranks[plan->worlds[s->world].first].program;

        return options_is_per_node(s->cluster->options, (size_t)program);
}

static int count_nodes(const struct endpoint_setup *s)
{
        return s->attempt->plan->worlds[s->world].num_nodes;
}

/* --- orders --- */

/* Appends every address from which a rank of the job may connect. */
static void add_peer_addrs(struct strv *peers, const struct endpoint_setup *s)
{
        for (size_t i = 0; i < s->cluster->n_nodes; i++) {
                const struct node *n = &s->cluster->nodes[i];

                if (!hosts_ranks(s, i))
                        continue;
                if (peers->n + n->hello.n_addrs + 2 > ENDPOINT_PEERS_MAX)
                        return;
                job_owners_add_addrs(peers, n);
        }
}

/* The count of orders grows with each order, and falls with each answer: the answer to the last
 * order brings the count to 0. */
static void order_endpoint(struct endpoint_setup *s, size_t node, const struct endpoint_order *m)
{
        struct buf *out = &s->cluster->nodes[node].out;
        size_t mark = world_begin(out, s->world);

        endpoint_order_encode(out, m);
        world_end(out, mark, 0);
        s->result.nodes[node].asked_endpoint = true;
        s->orders[node].endpoint++;
        node_flush(&s->cluster->nodes[node]);
}

/* Lets every other node probe the port at which the endpoint is, or will be in a moment. */
static void order_probes(struct endpoint_setup *s)
{
        const struct job_endpoint *d = &s->result;
        struct probe_order m = { .port = d->port, .timeout_ms = (uint32_t)d->timeout_ms };

        s->answered = 0;
        memcpy(m.token, d->token, sizeof(m.token));
        for (size_t i = 0; i < d->candidates.n; i++)
                strv_push(&m.addrs, d->candidates.v[i].addr);
        for (size_t i = 0; i < s->cluster->n_nodes; i++) {
                struct buf *out = &s->cluster->nodes[i].out;
                size_t mark;

                if (i == d->first || !hosts_ranks(s, i))
                        continue;
                mark = world_begin(out, s->world);
                probe_order_encode(out, &m);
                world_end(out, mark, 0);
                d->nodes[i].asked_probe = true;
                d->nodes[i].has_probed = false;
                s->orders[i].probe++;
                node_flush(&s->cluster->nodes[i]);
        }
        strv_finish(&m.addrs);
}

/* --- answers --- */

int job_endpoint_opened(struct endpoint_setup *s, size_t node, const struct frame *f,
                        struct error *err)
{
        struct job_endpoint_node *d = s->result.nodes ? &s->result.nodes[node] : NULL;
        struct endpoint_opened m;

        if (endpoint_opened_decode(&m, f, err) < 0)
                return -err->code;
        if (!s->orders[node].endpoint)
                return err_set(err, EPROTO,
                               "message out of turn: ENDPOINT_OPENED without an order");
        if (m.port > UINT16_MAX)
                return err_set(err, EPROTO, "malformed ENDPOINT_OPENED message: port %u", m.port);
        if (--s->orders[node].endpoint || !d || !d->asked_endpoint)
                return 0; /* to an earlier order */
        d->endpoint_opened = xcalloc(1, sizeof(*d->endpoint_opened));
        *d->endpoint_opened = m;
        s->refused |= !m.port;
        if (s->result.mode == STORE_LISTEN_NETWORK && m.port && m.port != s->result.port) {
                /* Another process had taken the promised port. */
                s->result.port = m.port;
                order_probes(s);
        }
        return 0;
}

/* An agent that gets a second PROBE answers the first with an empty list, so the number of results
 * counts only in the last answer. */
int job_endpoint_probed(struct endpoint_setup *s, size_t node, const struct frame *f,
                        struct error *err)
{
        struct job_endpoint_node *d = s->result.nodes ? &s->result.nodes[node] : NULL;
        struct probed m;
        int r;

        if (probed_decode(&m, f, err) < 0)
                return -err->code;
        if (!s->orders[node].probe) {
                r = err_set(err, EPROTO, "message out of turn: PROBED without an order");
        } else if (--s->orders[node].probe || !d || !d->asked_probe) {
                r = 0; /* to an earlier order */
        } else if (m.n != s->result.candidates.n) {
                r = err_set(err, EPROTO, "malformed PROBED message: %u results of %zu addresses",
                            m.n, s->result.candidates.n);
        } else {
                probed_finish(&d->probed);
                d->probed = m;
                d->has_probed = true;
                return 0;
        }
        probed_finish(&m);
        return r;
}

int job_endpoint_ports(struct endpoint_setup *s, const struct node *n, const struct frame *f,
                       struct error *err)
{
        int r = job_ports_held(&s->ports, n, f, err);

        s->refused |= r == 0 && job_ports_refused(&s->ports, (size_t)n->index);
        return r;
}

void job_endpoint_forget(struct endpoint_setup *s, size_t node)
{
        job_ports_forget(&s->ports, node);
        s->orders[node] = (struct endpoint_orders){ 0 };
        /* The next agent there promises a port of its own. */
        if (s->kept_promise == node + 1)
                s->kept_promise = 0;
}

bool job_endpoint_owes(const struct endpoint_setup *s, size_t node)
{
        const struct job_endpoint_node *d = s->result.nodes ? &s->result.nodes[node] : NULL;

        return d && ((d->asked_endpoint && !d->endpoint_opened) ||
                     (d->asked_probe && !d->has_probed) || job_ports_owed(&s->ports, node));
}

bool job_endpoint_serves(const struct endpoint_setup *s, size_t node)
{
        const struct job_endpoint *d = &s->result;

        return d->nodes && d->mode == STORE_LISTEN_NETWORK && d->first == node;
}

/* Whether no participating node is lost. Examines the nodes only after a new failure. */
static bool has_all_nodes(struct endpoint_setup *s)
{
        if (s->failed_seen == s->cluster->failed)
                return true;
        for (size_t i = 0; i < s->cluster->n_nodes; i++)
                if (hosts_ranks(s, i) && s->cluster->nodes[i].state != NODE_READY)
                        return false;
        s->failed_seen = s->cluster->failed;
        return true;
}

/* Breaks the nodes without an answer: has_all_nodes() is false then, and the wait ends. */
static void on_patience_over(uv_timer_t *t)
{
        struct endpoint_setup *s = t->data;

        for (size_t i = 0; i < s->cluster->n_nodes; i++)
                if (job_endpoint_owes(s, i))
                        node_break(&s->cluster->nodes[i], LINK_TIMED_OUT,
                                   "its agent did not answer within %lld s",
                                   (long long)(s->result.timeout_ms + SLACK_MS) / 1000);
}

/* Returns JOB_DONE when all nodes have answered; else as job_open_endpoint(). */
static enum job_step await_answers(struct endpoint_setup *s)
{
        const struct outcome *o = &s->attempt->outcome;

        heartbeat_start(s->heartbeat, false);
        uv_timer_start(&s->timer, on_patience_over, (uint64_t)(s->result.timeout_ms + SLACK_MS), 0);
        /* Checked in every turn of the loop, so without a look at every node. */
        while (!outcome_failed(o) && !s->refused && has_all_nodes(s) &&
               s->answered < s->cluster->n_nodes) {
                if (job_endpoint_owes(s, s->answered))
                        uv_run(s->cluster->loop, UV_RUN_ONCE);
                else
                        s->answered++;
        }
        uv_timer_stop(&s->timer);
        if (outcome_failed(o))
                return JOB_INTERRUPTED;
        if (!has_all_nodes(s))
                return JOB_NODES_LOST;
        return s->refused ? JOB_NODES_UNFIT : JOB_DONE;
}

/* --- the modes --- */

/* Fills in the candidates for MASTER_ADDR from the HELLOs of all nodes with ranks, rank 0's node
 * first. Returns 0, or negative with @err. */
static int find_candidates(struct endpoint_setup *s, struct error *err)
{
        const struct cluster *c = s->cluster;
        size_t first = s->result.first, n = 0;
        const struct hello **hellos = xcalloc(c->n_nodes, sizeof(*hellos));
        int r;

        hellos[n++] = &c->nodes[first].hello;
        for (size_t i = 0; i < c->n_nodes; i++)
                if (i != first && hosts_ranks(s, i))
                        hellos[n++] = &c->nodes[i].hello;
        r = master_addr_candidates(&s->result.candidates, c->nodes[first].host, hellos, n,
                                   c->options->iface, err);
        free(hellos);
        return r;
}

/* Logs address and round trips (-v): a slow first connection of the ranks shows here already. */
static void log_network(const struct endpoint_setup *s, const struct probed *const *probed,
                        size_t n, int64_t began_ns)
{
        const struct job_endpoint *d = &s->result;
        const char *addr = d->candidates.v[d->chosen].addr;
        bool v6 = strchr(addr, ':') != NULL;
        uint32_t least = UINT32_MAX, most = 0;

        for (size_t i = 0; i < n; i++) {
                least = MIN(least, probed[i]->results[d->chosen].us);
                most = MAX(most, probed[i]->results[d->chosen].us);
        }
        log_line(LOG_INFO,
                 "store at %s%s%s:%u, reached by %zu node%s in %.1f-%.1f ms (%.1f ms in all)",
                 v6 ? "[" : "", addr, v6 ? "]" : "", d->port, n, n == 1 ? "" : "s", least / 1e3,
                 most / 1e3, (double)(clock_ns() - began_ns) / 1e6);
}

/* With a port promised in HELLO the probes are ordered together with the endpoint, which saves a
 * round trip; else the probes follow when the port is known. */
static enum job_step open_network(struct endpoint_setup *s, struct error *err)
{
        struct job_endpoint *d = &s->result;
        struct endpoint_order m = { .mode = ENDPOINT_NETWORK };
        int64_t began_ns = clock_ns();
        const struct probed **probed;
        enum job_step r;
        size_t n = 0;

        if (find_candidates(s, err) < 0)
                return JOB_IMPOSSIBLE;
        if (!master_addr_is_numeric(d->candidates.v[0].addr)) {
                err_set(err, EADDRNOTAVAIL, "addr=%s of %s does not resolve here",
                        d->candidates.v[0].addr, s->cluster->nodes[d->first].host->name);
                return JOB_IMPOSSIBLE;
        }
        memcpy(m.token, d->token, sizeof(m.token));
        add_peer_addrs(&m.peers, s);
        m.ask_owners = !s->cluster->options->store_peers_node;
        if (m.ask_owners)
                job_owners_allow(s->owners, d->first);
        order_endpoint(s, d->first, &m);
        strv_finish(&m.peers);
        if (d->port)
                order_probes(s);
        r = await_answers(s);
        if (r != 0)
                return r;
        /* Rank 0's node has no results: the agent there does not probe itself. */
        probed = xcalloc(s->cluster->n_nodes, sizeof(*probed));
        for (size_t i = 0; i < s->cluster->n_nodes; i++)
                if (d->nodes[i].has_probed)
                        probed[n++] = &d->nodes[i].probed;
        d->chosen = master_addr_pick(probed, n, d->candidates.n);
        if (d->chosen >= 0)
                log_network(s, probed, n, began_ns);
        free(probed);
        return d->chosen >= 0 ? JOB_DONE : JOB_NODES_UNFIT;
}

/* Orders an endpoint on 127.0.0.1 of every node with ranks: the agents' relays join them to one
 * store. */
static enum job_step open_loopback(struct endpoint_setup *s, struct error *err)
{
        int num_nodes = count_nodes(s);
        struct endpoint_order m = { .mode = ENDPOINT_LOOPBACK };
        int64_t began_ns = clock_ns();
        enum job_step r;

        /* Not for MASTER_ADDR, but for the interface of the ranks' own traffic. */
        if (num_nodes > 1 && find_candidates(s, err) < 0)
                return JOB_IMPOSSIBLE;
        memcpy(m.token, s->result.token, sizeof(m.token));
        for (size_t i = 0; i < s->cluster->n_nodes; i++)
                if (hosts_ranks(s, i))
                        order_endpoint(s, i, &m);
        r = await_answers(s);
        if (r == 0)
                log_line(LOG_INFO, "store at 127.0.0.1 on %d node%s (%.1f ms in all)", num_nodes,
                         num_nodes == 1 ? "" : "s", (double)(clock_ns() - began_ns) / 1e6);
        return r;
}

/* Ranks of a single node meet at 127.0.0.1, without any network, unless an address is given. */
static enum job_step open_none(struct endpoint_setup *s, struct error *err)
{
        struct job_endpoint *d = &s->result;
        enum job_step r;

        if (find_candidates(s, err) < 0)
                return JOB_IMPOSSIBLE;
        if (count_nodes(s) == 1 && !d->candidates.given)
                d->candidates =
                        (struct master_addr_list){ .v = { { .addr = "127.0.0.1" } }, .n = 1 };
        r = await_answers(s);
        if (r == 0 && job_ports_master(&s->ports))
                d->port = job_ports_master(&s->ports);
        return r;
}

/* The counts of orders stay, for late answers. */
static void forget_answers(struct endpoint_setup *s)
{
        struct job_endpoint_node *nodes = s->result.nodes;

        for (size_t i = 0; nodes && i < s->cluster->n_nodes; i++) {
                probed_finish(&nodes[i].probed);
                free(nodes[i].endpoint_opened);
        }
        free(nodes);
        s->result = (struct job_endpoint){ 0 };
}

/* Sets the plan of the attempt, which the functions above read, before the launch does. */
enum job_step job_endpoint_open(struct endpoint_setup *s, const struct plan *plan,
                                struct error *err)
{
        struct job_endpoint *d = &s->result;
        const struct options *o = s->cluster->options;

        forget_answers(s);
        s->attempt->plan = plan;
        s->answered = 0;
        s->failed_seen = SIZE_MAX; /* not yet */
        s->refused = false;
        d->first = (size_t)plan->ranks[plan->worlds[s->world].first].node;
        /* The promise of HELLO is used up by the first endpoint: a probe could reach that one, with
         * the token of the next. */
        if (!s->world && !s->attempt->number && s->kept_promise != d->first + 1)
                d->port = s->cluster->nodes[d->first].hello.free_port;
        s->kept_promise = d->first + 1;
        token_make(d->token, ENDPOINT_TOKEN);
        /* For one address, also when several are tried: the agents try all at the same time. */
        d->timeout_ms = MAX(o->connect_timeout_ms, PROBE_MS);
        /* The port belongs to the program, which starts ranks of its own. */
        d->mode = is_per_node(s) ? STORE_LISTEN_NONE : o->store_listen;
        if (d->mode == STORE_LISTEN_NETWORK && count_nodes(s) == 1)
                d->mode = STORE_LISTEN_LOOPBACK;
        d->nodes = xcalloc(s->cluster->n_nodes, sizeof(*d->nodes));
        job_ports_order(&s->ports, s->cluster->nodes, plan, d->first,
                        d->mode == STORE_LISTEN_NONE && !d->port);
        switch (d->mode) {
        case STORE_LISTEN_NETWORK:
                return open_network(s, err);
        case STORE_LISTEN_LOOPBACK:
                return open_loopback(s, err);
        default:
                return open_none(s, err);
        }
}

struct job_owners *job_endpoint_owners(struct endpoint_setup *s)
{
        return s->owners;
}

const struct job_endpoint *job_endpoint_result(const struct endpoint_setup *s)
{
        return &s->result;
}

/* --- the address for the ranks of a node --- */

/* Returns the interface for GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME on a node, the best known:
 * where the probe left the node, else by the address. */
static const char *interface_of_node(const struct endpoint_setup *s, size_t node)
{
        const struct job_endpoint *d = &s->result;

        if (d->mode == STORE_LISTEN_NONE && !is_per_node(s))
                return "";
        if (count_nodes(s) == 1)
                return "lo";
        if (d->mode == STORE_LISTEN_NETWORK && d->nodes[node].has_probed &&
            *d->nodes[node].probed.results[d->chosen].iface)
                return d->nodes[node].probed.results[d->chosen].iface;
        if (node == d->first)
                return d->candidates.v[d->chosen].iface;
        return master_addr_iface(&s->cluster->nodes[node].hello, &d->candidates.v[d->chosen]);
}

/* Without candidates, in a world of one node, the address is 127.0.0.1. */
void job_endpoint_fill_common(const struct endpoint_setup *s, struct launch_order *m)
{
        const struct job_endpoint *d = &s->result;

        job_ports_fill(&s->ports, &m->first_node);
        snprintf(m->first_node.addr, sizeof(m->first_node.addr), "%s",
                 d->candidates.n ? d->candidates.v[d->chosen].addr : "127.0.0.1");
}

const struct job_ports *job_endpoint_reserved(const struct endpoint_setup *s)
{
        return &s->ports;
}

void job_endpoint_fill(const struct endpoint_setup *s, size_t node, struct launch_order *m)
{
        const struct job_endpoint *d = &s->result;
        bool loopback = d->mode == STORE_LISTEN_LOOPBACK;

        m->agent_store = d->mode != STORE_LISTEN_NONE;
        m->per_node = is_per_node(s);
        m->master_port = loopback ? d->nodes[node].endpoint_opened->port : d->port;
        snprintf(m->master_addr, sizeof(m->master_addr), "%s",
                 loopback ? "127.0.0.1" : d->candidates.v[d->chosen].addr);
        snprintf(m->iface, sizeof(m->iface), "%s", interface_of_node(s, node));
}

/* --- life cycle --- */

struct endpoint_setup *job_endpoint_create(struct cluster *c, struct attempt *a,
                                           struct heartbeat *h, struct port_names ports,
                                           uint32_t world)
{
        struct endpoint_setup *s = xcalloc(1, sizeof(*s));

        job_ports_init(&s->ports, ports, c->n_nodes, world);
        s->world = world;
        s->cluster = c;
        s->attempt = a;
        s->heartbeat = h;
        s->orders = xcalloc(c->n_nodes, sizeof(*s->orders));
        s->owners = job_owners_create(c, a, world);
        cluster_init_timer(c, &s->timer, s);
        return s;
}

void job_endpoint_close(struct endpoint_setup *s)
{
        job_owners_close(s->owners);
        uv_close((uv_handle_t *)&s->timer, NULL);
}

void job_endpoint_free(struct endpoint_setup *s)
{
        forget_answers(s);
        free(s->orders);
        job_ports_finish(&s->ports);
        job_owners_free(s->owners);
        free(s);
}
