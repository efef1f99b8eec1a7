/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks at PyTorch's TCP endpoint are found in two steps, because the endpoint sees only addresses.
 * The peer's address leads to a node (a hash of all addresses of all nodes; an address on two nodes
 * decides nothing, nor does loopback, which is the endpoint's own node). The peer's port leads to
 * the rank there whose process lists the port (an array sorted by port). All connections are
 * matched at once, after the last answer.
 */
#include "head/status/rank_table.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/printable.h"

/* In place of a node or a rank. */
enum { NOT_FOUND = -1, SEVERAL = -2 };

void rank_table_init(struct rank_table *t, const struct plan *plan, const struct hosts *hosts,
                     const char *run_id)
{
        *t = (struct rank_table){
                .plan = plan, .hosts = hosts, .n = (size_t)plan->world_size, .run_id = run_id
        };
        t->rows = xcalloc(t->n, sizeof(*t->rows));
        t->answered = xcalloc(plan->n_nodes, sizeof(*t->answered));
        for (size_t i = 0; i < t->n; i++)
                t->rows[i] = (struct rank_row){ .rank = (int)i,
                                                .local_rank = plan->ranks[i].local_rank,
                                                .node = plan->ranks[i].node,
                                                .world = plan->ranks[i].world,
                                                .joined_ms = -1,
                                                .progress = { .step = -1 } };
}

void rank_table_finish(struct rank_table *t)
{
        free(t->rows);
        free(t->conns);
        free(t->conn_nodes);
        free(t->answered);
        *t = (struct rank_table){ 0 };
}

void rank_table_joined(struct rank_table *t, int rank, int64_t ms_after_launch)
{
        t->rows[rank].joined = true;
        t->rows[rank].joined_ms = ms_after_launch;
}

/* What the head knows of an end goes before any answer of a node, which may be older. */
void rank_table_ended(struct rank_table *t, int rank)
{
        t->rows[rank].known = RANK_ROW_ENDED;
}

void rank_table_lost(struct rank_table *t, int rank)
{
        t->rows[rank].known = RANK_ROW_LOST;
}

void rank_table_progress(struct rank_table *t, int rank, struct rank_progress progress)
{
        t->rows[rank].progress = progress;
}

/* A node's texts are shown in rows: they must not end a row, nor move the cursor. */
static void mask_wait(struct node_status_wait *w)
{
        printable_mask(w->op);
        printable_mask(w->key);
}

void rank_table_add(struct rank_table *t, int node, const struct node_status *answer)
{
        const struct intlist *ranks = &t->plan->nodes[node].ranks;

        t->answered[node] = true;
        t->rejected += answer->rejected;
        for (size_t i = 0; i < ranks->n; i++)
                /* The node has answered: a rank that is not in the answer has not started. */
                if (t->rows[ranks->v[i]].known == RANK_ROW_SILENT)
                        t->rows[ranks->v[i]].known = RANK_ROW_UNKNOWN;
        for (uint32_t i = 0; i < answer->n_ranks; i++) {
                const struct node_status_rank *k = &answer->ranks[i];
                struct rank_row *r = k->rank < t->n ? &t->rows[k->rank] : NULL;

                /* A node may tell of its own ranks only. */
                if (!r || r->node != node)
                        continue;
                r->k = *k;
                printable_mask(r->k.channel);
                mask_wait(&r->k.wait);
                /* A request to the store shows that the rank has joined. */
                r->joined |= k->said_ms != STATUS_NEVER;
                if (r->known != RANK_ROW_ENDED && r->known != RANK_ROW_LOST)
                        r->known = k->state ? RANK_ROW_ALIVE : RANK_ROW_ENDED;
        }
        if (!answer->n_conns)
                return;
        /* Kept until the last answer: the rank of a connection may be on another node than the
         * endpoint. */
        t->conns = xrealloc(t->conns, t->n_conns + answer->n_conns, sizeof(*t->conns));
        t->conn_nodes =
                xrealloc(t->conn_nodes, t->n_conns + answer->n_conns, sizeof(*t->conn_nodes));
        for (uint32_t i = 0; i < answer->n_conns; i++) {
                t->conns[t->n_conns] = answer->conns[i];
                mask_wait(&t->conns[t->n_conns].wait);
                t->conn_nodes[t->n_conns++] = node;
        }
}

/* --- connections and ranks --- */

/* The node of an address: SEVERAL for an address on two nodes (every docker0 is 172.17.0.1). */
struct addr_owner {
        UT_hash_handle hh;
        int node;
        char addr[];
};

/* Turns ::ffff:10.0.0.1, the form of IPv6 sockets, into 10.0.0.1. */
static const char *plain_addr(const char *addr)
{
        return strncmp(addr, "::ffff:", 7) || !strchr(addr, '.') ? addr : addr + 7;
}

/* Adds an address of a node to the hash; "" is none. */
static void add_addr_owner(struct addr_owner **owners, const char *addr, int node)
{
        size_t len = strlen(addr);
        struct addr_owner *o;

        if (!len)
                return;
        HASH_FIND_STR(*owners, addr, o);
        if (o) {
                o->node = o->node == node ? node : SEVERAL;
                return;
        }
        o = xcalloc(1, sizeof(*o) + len + 1);
        o->node = node;
        memcpy(o->addr, addr, len);
        HASH_ADD_KEYPTR(hh, *owners, o->addr, len, o);
}

/* Returns all addresses of all nodes: from the hostfile, of the interfaces, and that of the ssh
 * connection, which may be the only one known. */
static struct addr_owner *list_addr_owners(const struct rank_table *t,
                                           const struct hello *const *hellos)
{
        struct addr_owner *owners = NULL;

        for (size_t i = 0; i < t->plan->n_nodes; i++) {
                const struct hello *h = hellos[i];

                if (t->hosts->v[i].addr)
                        add_addr_owner(&owners, t->hosts->v[i].addr, (int)i);
                for (uint32_t a = 0; h && a < h->n_addrs; a++)
                        add_addr_owner(&owners, h->addrs[a].addr, (int)i);
                if (h)
                        add_addr_owner(&owners, plain_addr(h->ssh_addr), (int)i);
        }
        return owners;
}

/* Returns the node of a peer's address; loopback is the endpoint's own node. */
static int find_addr_owner(struct addr_owner *owners, const char *addr, int endpoint_node)
{
        struct addr_owner *o;

        addr = plain_addr(addr);
        if (!strncmp(addr, "127.", 4) || !strcmp(addr, "::1"))
                return endpoint_node;
        HASH_FIND_STR(owners, addr, o);
        return o && o->node != SEVERAL ? o->node : NOT_FOUND;
}

/* A local port of a rank's process. */
struct rank_port {
        uint32_t number;
        int rank;
};

/* By port, then by rank. */
static int compare_ports(const void *a, const void *b)
{
        const struct rank_port *x = a, *y = b;

        if (x->number != y->number)
                return x->number < y->number ? -1 : 1;
        return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Returns the ports of all ranks, sorted. */
static struct rank_port *list_rank_ports(const struct rank_table *t, size_t *ret_n)
{
        struct rank_port *v = xcalloc(t->n * STATUS_PORTS, sizeof(*v));
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                for (uint32_t p = 0; p < t->rows[i].k.n_ports; p++)
                        v[n++] = (struct rank_port){ t->rows[i].k.ports[p], (int)i };
        if (n)
                qsort(v, n, sizeof(*v), compare_ports);
        *ret_n = n;
        return v;
}

/* Returns the rank on @node with the port; without a node, the only rank with the port. */
static int find_rank_with_port(const struct rank_table *t, const struct rank_port *v, size_t n,
                               uint32_t number, int node)
{
        size_t low = 0, high = n;
        int found = NOT_FOUND;

        /* Finds the first entry with the port. */
        while (low < high) {
                size_t mid = (low + high) / 2;

                if (v[mid].number < number)
                        low = mid + 1;
                else
                        high = mid;
        }
        for (; low < n && v[low].number == number; low++) {
                if (node != NOT_FOUND && t->rows[v[low].rank].node == node)
                        return v[low].rank;
                /* Behind address translation no node has the peer's address: the port alone
                 * decides, if only one rank lists it. */
                found = found == NOT_FOUND ? v[low].rank : SEVERAL;
        }
        return node == NOT_FOUND && found != SEVERAL ? found : NOT_FOUND;
}

/* Corrects the operation of barriers. A barrier of PMI without keys is that of MPI_Finalize() only
 * if all ranks of the world have called MPI_Init(). */
static void rename_early_barriers(struct rank_table *t)
{
        bool *early = xcalloc(t->plan->n_worlds + 1, sizeof(*early)); /* by world */

        for (size_t i = 0; i < t->n; i++)
                early[t->rows[i].world] |= !t->rows[i].joined;
        for (size_t i = 0; i < t->n; i++)
                if (early[t->rows[i].world] && !strcmp(t->rows[i].k.wait.op, "FINALIZE"))
                        snprintf(t->rows[i].k.wait.op, sizeof(t->rows[i].k.wait.op), "BARRIER");
        free(early);
}

/* A server may never join, and a role may start late: ranks are missed by others of their world. */
static void find_apart_worlds(struct rank_table *t)
{
        size_t n = t->plan->n_worlds;
        bool *joined = xcalloc(n, sizeof(*joined));

        for (size_t i = 0; i < t->n && n > 1; i++)
                joined[t->rows[i].world] |= t->rows[i].joined;
        for (size_t i = 0; i < t->n && n > 1; i++)
                t->rows[i].apart = !joined[t->rows[i].world];
        free(joined);
}

int64_t rank_table_excuse_young(struct rank_table *t, int64_t ms)
{
        int64_t left = 0;

        for (size_t i = 0; i < t->n && t->plan->n_worlds > 1; i++) {
                struct rank_row *r = &t->rows[i];
                /* A rank that has not started is as young as can be. */
                int64_t age = r->known == RANK_ROW_UNKNOWN ? 0 : r->k.started_ms;

                /* Of a rank whose node does not answer no time is known. */
                if (r->known == RANK_ROW_ENDED || r->known == RANK_ROW_LOST ||
                    r->known == RANK_ROW_SILENT || r->joined || age >= ms)
                        continue;
                r->apart = true;
                left = MAX(left, ms - age);
        }
        return left;
}

size_t rank_table_match(struct rank_table *t, const struct hello *const *hellos)
{
        struct addr_owner *owners, *o, *next;
        struct rank_port *ports;
        size_t n_ports, unknown = 0;

        /* By what is known before connections are matched: PMI has no connections at the
         * endpoint. */
        rename_early_barriers(t);
        if (!t->n_conns) {
                find_apart_worlds(t);
                return 0;
        }
        owners = list_addr_owners(t, hellos);
        ports = list_rank_ports(t, &n_ports);
        for (size_t i = 0; i < t->n_conns; i++) {
                const struct node_status_conn *c = &t->conns[i];
                int node = find_addr_owner(owners, c->addr, t->conn_nodes[i]);
                int rank = find_rank_with_port(t, ports, n_ports, c->port, node);
                struct rank_row *r = rank == NOT_FOUND ? NULL : &t->rows[rank];

                /* A process that no rank lists, such as a helper in a container. */
                if (!r) {
                        unknown++;
                        continue;
                }
                r->joined = true;
                r->k.seen_ms = MIN(r->k.seen_ms, c->seen_ms);
                /* Of several connections of a rank the longest wait counts. */
                if (*c->wait.op && (!*r->k.wait.op || c->wait.ms > r->k.wait.ms))
                        r->k.wait = c->wait;
        }
        HASH_ITER(hh, owners, o, next)
        {
                HASH_DEL(owners, o);
                free(o);
        }
        free(ports);
        find_apart_worlds(t);
        return unknown;
}

/* --- questions --- */

/* Requests of other kinds need no other rank for their answer. */
bool rank_row_waits(const struct rank_row *r)
{
        static const char *const ops[] = { "WAIT",      "GET",   "BARRIER", "GATHER",
                                           "BROADCAST", "COUNT", "FINALIZE" };

        for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
                if (!strcmp(r->k.wait.op, ops[i]))
                        return r->known == RANK_ROW_ALIVE;
        return false;
}

bool rank_row_meets(const struct rank_row *r)
{
        return rank_row_waits(r) && !strncmp(r->k.wait.key, "PMI", 3) &&
               (!strcmp(r->k.wait.op, "FINALIZE") || !strcmp(r->k.wait.op, "BARRIER"));
}

bool rank_row_joined(const struct rank_row *r)
{
        return r->joined;
}

bool rank_row_missing(const struct rank_row *r)
{
        return r->known != RANK_ROW_ENDED && r->known != RANK_ROW_LOST && !r->joined && !r->apart;
}

bool rank_row_steps(const struct rank_row *r)
{
        return r->progress.step >= 0;
}

size_t rank_table_count(const struct rank_table *t, rank_filter filter)
{
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                n += filter(&t->rows[i]);
        return n;
}

size_t rank_table_count_world(const struct rank_table *t, int rank, rank_filter filter)
{
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                n += t->rows[i].world == t->rows[rank].world && filter(&t->rows[i]);
        return n;
}

size_t rank_table_world_size(const struct rank_table *t, int rank)
{
        return t->plan->n_worlds > 1 ? (size_t)t->plan->worlds[t->rows[rank].world].size : t->n;
}

uint32_t rank_table_longest(const struct rank_table *t)
{
        uint32_t longest = 0;

        for (size_t i = 0; i < t->n; i++)
                if (rank_row_waits(&t->rows[i]))
                        longest = MAX(longest, t->rows[i].k.wait.ms);
        return longest;
}
