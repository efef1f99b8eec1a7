/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/store_server.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/strv.h"
#include "store/engine/store.h"
#include "wire/store_keys.h"
#include "wire/store_msg.h"

enum {
        OUT_KEEP = 64 << 10,
        LONG_VALUE = 16 << 10, /* worth a piece of its own */
};

/* One connection to an endpoint that has said HELLO. */
struct client {
        uint32_t id;
        int rank;
};

/* Those of one node, ordered by id: as many as it has ranks, and found with one look at memory. */
struct clients {
        struct client *v;
        size_t n;
};

struct store_server {
        struct store_server_ops ops;
        void *ctx;
        struct topology where;
        uint32_t *ranks;    /* those of node i are ranks[ranks_at[i]] .. before ranks_at[i + 1] */
        uint32_t *ranks_at; /* per node, and the end */
        struct store *store;
        struct clients *clients; /* per node */
        bool *has_joined;        /* per rank */
        bool *lost;              /* per node */
        uint64_t n_in, n_out;    /* messages */
        bool stopping;           /* all have been told to end: that they do is no news */
        struct store_keys lists;
        struct buf out;
};

static uint64_t owner_of(int node, uint32_t client)
{
        return (uint64_t)node << 32 | client;
}

/* Where the client is, or would be. */
static size_t position(const struct clients *c, uint32_t id)
{
        size_t low = 0, high = c->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (c->v[mid].id < id)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static struct client *find(struct store_server *r, int node, uint32_t id)
{
        struct clients *c = &r->clients[node];
        size_t at = position(c, id);

        return at < c->n && c->v[at].id == id ? &c->v[at] : NULL;
}

static struct client *add(struct store_server *r, int node, uint32_t id)
{
        struct clients *c = &r->clients[node];
        size_t at = position(c, id);

        /* Full when their number is a power of two, or none. */
        if (!(c->n & (c->n - 1)))
                c->v = xrealloc(c->v, c->n ? c->n * 2 : 1, sizeof(*c->v));
        memmove(c->v + at + 1, c->v + at, (c->n++ - at) * sizeof(*c->v));
        c->v[at] = (struct client){ .id = id };
        return &c->v[at];
}

static void forget(struct store_server *r, int node, struct client *gone)
{
        struct clients *c = &r->clients[node];
        size_t at = (size_t)(gone - c->v);

        store_forget(r->store, owner_of(node, gone->id));
        memmove(gone, gone + 1, (--c->n - at) * sizeof(*c->v));
}

/* Sends what is in r->out, and the bytes that belong behind it. */
static void flush(struct store_server *r, int node, struct bytes rest)
{
        bool whole = !r->lost[node] && !buf_failed(&r->out);

        r->n_out++;
        if (whole && rest.len)
                r->ops.send_long(r->ctx, node, buf_data(&r->out), buf_len(&r->out), rest);
        else if (whole)
                r->ops.send(r->ctx, node, buf_data(&r->out), buf_len(&r->out));
        /* A reply may be 24 MiB: do not keep that for the next ones, which are small. */
        if (buf_failed(&r->out) || r->out.cap > OUT_KEEP)
                buf_finish(&r->out);
        else
                buf_clear(&r->out);
}

static void send_reply(void *ctx, uint64_t owner, const struct store_reply *reply)
{
        struct store_server *r = ctx;
        struct store_reply addressed = *reply;

        addressed.client = (uint32_t)owner;
        if (r->ops.send_long && !reply->n_parts && reply->value.len >= LONG_VALUE) {
                store_reply_encode_head(&r->out, &addressed);
                flush(r, (int)(owner >> 32), reply->value);
        } else {
                store_reply_encode(&r->out, &addressed);
                flush(r, (int)(owner >> 32), (struct bytes){ 0 });
        }
}

static const char *host_of(void *ctx, int rank)
{
        struct store_server *r = ctx;

        return r->where.hosts[r->where.node_of_rank[rank]];
}

static void refuse(struct store_server *r, uint64_t owner, uint32_t tag, const char *text)
{
        send_reply(r, owner,
                   &(struct store_reply){
                           .tag = tag, .status = STORE_INVALID, .text = bytes_of(text) });
}

static void on_hello(struct store_server *r, int node, const struct store_request *req)
{
        uint64_t owner = owner_of(node, req->client);
        struct client *c = find(r, node, req->client);
        int rank = (int)req->number;

        if (req->number < 0 || req->number >= r->where.world_size ||
            r->where.node_of_rank[req->number] != (uint32_t)node) {
                refuse(r, owner, req->tag, "no such rank on this node");
                return;
        }
        if (!c)
                c = add(r, node, req->client);
        c->rank = rank;
        send_reply(r, owner, &(struct store_reply){ .tag = req->tag, .status = STORE_OK });
        if (!r->has_joined[rank] && r->ops.joined)
                r->ops.joined(r->ctx, rank);
        r->has_joined[rank] = true;
}

static void on_topology(struct store_server *r, uint64_t owner, uint32_t tag)
{
        struct buf b = BUF_INIT;

        topology_encode(&b, &r->where);
        send_reply(r, owner,
                   &(struct store_reply){ .tag = tag,
                                          .status = STORE_OK,
                                          .value = { buf_data(&b), buf_len(&b) } });
        buf_finish(&b);
}

static char *text_of(struct bytes b)
{
        char *text = xcalloc(1, b.len + 1);

        if (b.len)
                memcpy(text, b.p, b.len);
        return text;
}

static void on_report(struct store_server *r, int rank, const struct store_request *req)
{
        char *kind = text_of(req->key), *text = text_of(req->text);

        if (req->op == STORE_REPORT_ERROR && r->ops.report_error)
                r->ops.report_error(r->ctx, rank, kind, text);
        if (req->op == STORE_PROGRESS && r->ops.progress)
                r->ops.progress(r->ctx, rank, req->number, req->total, text);
        if (req->op == STORE_ABORT && r->ops.abort)
                r->ops.abort(r->ctx, rank, (int)MAX(MIN(req->number, INT_MAX), INT_MIN), text);
        free(kind);
        free(text);
}

static void dispatch(struct store_server *r, uint64_t owner, int rank,
                     const struct store_request *req)
{
        switch (req->op) {
        case STORE_TOPOLOGY:
                on_topology(r, owner, req->tag);
                break;
        case STORE_ABORT:
                /* Answered first: the abort may end this rank's node. */
                send_reply(r, owner, &(struct store_reply){ .tag = req->tag });
                on_report(r, rank, req);
                break;
        case STORE_REPORT_ERROR:
        case STORE_PROGRESS:
                on_report(r, rank, req);
                break;
        default:
                store_request(r->store, owner, rank, req);
        }
}

/* The node's relay asks for many clients: it is no rank, and what it asks for outlives each of
 * them. */
static void dispatch_node(struct store_server *r, int node, const struct store_request *req)
{
        uint64_t owner = owner_of(node, STORE_NODE);

        switch (req->op) {
        case STORE_GONE:
                store_forget(r->store, owner);
                break;
        case STORE_HELLO:
        case STORE_TOPOLOGY:
        case STORE_ABORT:
                refuse(r, owner, req->tag, "only a rank can ask for this");
                break;
        case STORE_REPORT_ERROR:
        case STORE_PROGRESS:
                break;
        default:
                store_request(r->store, owner, -1, req);
        }
}

static void dispatch_client(struct store_server *r, int node, const struct store_request *req)
{
        uint64_t owner = owner_of(node, req->client);
        struct client *c = find(r, node, req->client);

        if (req->op == STORE_GONE) {
                if (c)
                        forget(r, node, c);
        } else if (req->op == STORE_HELLO) {
                on_hello(r, node, req);
        } else if (c) {
                dispatch(r, owner, c->rank, req);
        } else if (store_op_has_answer(req->op)) {
                refuse(r, owner, req->tag, "the first request must be HELLO");
        }
}

int store_server_receive(struct store_server *r, int node, const void *body, size_t len,
                         struct error *err)
{
        struct store_request req = { 0 };
        int ret = store_keys_decode(&r->lists, &req, body, len, err);

        r->n_in++;
        if (ret < 0)
                return ret;
        /* What was still under way when a node was lost has no effect: nobody there can know. */
        if (!r->lost[node] && req.client == STORE_NODE)
                dispatch_node(r, node, &req);
        else if (!r->lost[node])
                dispatch_client(r, node, &req);
        store_request_finish(&req);
        return 0;
}

/* Who ends because all are told to end is not told: it would be every rank to every node. */
static void tell_all(struct store_server *r, enum store_news_kind kind, int rank, int node,
                     const char *text)
{
        struct store_news news = { .client = STORE_ALL,
                                   .kind = (uint8_t)kind,
                                   .rank = rank,
                                   .node = node,
                                   .text = bytes_of(text) };

        for (uint32_t i = 0; i < r->where.n_nodes && !r->stopping; i++) {
                store_news_encode(&r->out, &news);
                flush(r, (int)i, (struct bytes){ 0 });
        }
}

void store_server_rank_failed(struct store_server *r, int rank, const char *text)
{
        tell_all(r, STORE_RANK_FAILED, rank, (int)r->where.node_of_rank[rank], text);
        store_rank_failed(r->store, rank, text);
}

void store_server_rank_exited(struct store_server *r, int rank)
{
        store_rank_exited(r->store, rank);
}

void store_server_node_lost(struct store_server *r, int node)
{
        char text[512];

        if (r->lost[node])
                return;
        r->lost[node] = true;
        while (r->clients[node].n)
                forget(r, node, &r->clients[node].v[r->clients[node].n - 1]);
        store_forget(r->store, owner_of(node, STORE_NODE));
        snprintf(text, sizeof(text), "node %s is lost", r->where.hosts[node]);
        tell_all(r, STORE_NODE_LOST, -1, node, text);
        for (uint32_t i = r->ranks_at[node]; i < r->ranks_at[node + 1]; i++)
                store_rank_failed(r->store, (int)r->ranks[i], text);
}

void store_server_stop_requested(struct store_server *r, const char *text)
{
        tell_all(r, STORE_STOP_REQUESTED, -1, -1, text);
        r->stopping = true;
}

bool store_server_used(const struct store_server *r)
{
        return r->n_in > 0;
}

size_t store_server_waiting(const struct store_server *r)
{
        return store_waiting(r->store);
}

static void copy_topology(struct topology *t, int world_size, int n_nodes, const int *node_of_rank,
                          const char *const *hosts)
{
        t->n_nodes = (uint32_t)n_nodes;
        t->world_size = (uint32_t)world_size;
        t->hosts = xcalloc((size_t)n_nodes + 1, sizeof(*t->hosts));
        for (int i = 0; i < n_nodes; i++)
                t->hosts[i] = xstrdup(hosts[i]);
        t->node_of_rank = xcalloc((size_t)world_size + 1, sizeof(*t->node_of_rank));
        for (int i = 0; i < world_size; i++)
                t->node_of_rank[i] = (uint32_t)node_of_rank[i];
}

/* Ranks by node, for when one is lost: many may be at once. */
static void sort_ranks(struct store_server *r)
{
        const struct topology *t = &r->where;

        r->ranks = xcalloc((size_t)t->world_size + 1, sizeof(*r->ranks));
        r->ranks_at = xcalloc((size_t)t->n_nodes + 2, sizeof(*r->ranks_at));
        /* Counted one place to the right, so that the filling below moves each start home. */
        for (uint32_t i = 0; i < t->world_size; i++)
                r->ranks_at[t->node_of_rank[i] + 2]++;
        for (uint32_t i = 2; i < t->n_nodes + 2; i++)
                r->ranks_at[i] += r->ranks_at[i - 1];
        for (uint32_t i = 0; i < t->world_size; i++)
                r->ranks[r->ranks_at[t->node_of_rank[i] + 1]++] = i;
}

struct store_server *store_server_create(const struct store_server_ops *ops, void *ctx,
                                         int world_size, int n_nodes, const int *node_of_rank,
                                         const char *const *hosts)
{
        struct store_server *r = xcalloc(1, sizeof(*r));

        r->ops = *ops;
        r->ctx = ctx;
        r->store = store_create((struct store_ops){ .reply = send_reply, .host_of = host_of }, r,
                                world_size);
        if (!r->store) {
                free(r);
                return NULL;
        }
        copy_topology(&r->where, world_size, n_nodes, node_of_rank, hosts);
        sort_ranks(r);
        r->has_joined = xcalloc((size_t)world_size + 1, sizeof(*r->has_joined));
        r->clients = xcalloc((size_t)n_nodes + 1, sizeof(*r->clients));
        r->lost = xcalloc((size_t)n_nodes + 1, sizeof(*r->lost));
        return r;
}

void store_server_destroy(struct store_server *r)
{
        if (!r)
                return;
        log_line(LOG_DEBUG, "the store had %" PRIu64 " messages and sent %" PRIu64, r->n_in,
                 r->n_out);
        for (uint32_t i = 0; i < r->where.n_nodes; i++)
                free(r->clients[i].v);
        free(r->clients);
        store_destroy(r->store);
        topology_finish(&r->where);
        buf_finish(&r->out);
        store_keys_finish(&r->lists);
        free(r->ranks);
        free(r->ranks_at);
        free(r->has_joined);
        free(r->lost);
        free(r);
}
