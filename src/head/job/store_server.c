/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request comes from a client of a node (a connection to the endpoint there) or from the node's
 * relay (client STORE_NODE). Clients of a node are an array sorted by id, as many as the node has
 * ranks; a client enters with HELLO, which tells the rank, and leaves with GONE. The store
 * engine knows requesters by an owner: node << 32 | client.
 *
 * Requests for keys, queues and collectives go to the engine, which answers now or later through
 * send_reply(). Reports (errors, progress, abort) go to the job. Messages are composed in @out and
 * leave by ops.send; a long value is not copied but handed over as a second piece.
 *
 * Requests from a lost node have no effect: the waits have ended, and no reply would arrive.
 */
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
#include "base/memory.h"
#include "store/engine/store.h"
#include "wire/store_keys.h"
#include "wire/store_msg.h"

enum {
        OUT_KEEP = 64 << 10,
        LONG_VALUE = 16 << 10, /* sent as a second piece */
        CLIENTS_MAX = 1 << 16, /* connections of a node that have said HELLO */
};

/* A connection to an endpoint, after HELLO. */
struct store_client {
        uint32_t id;
        int rank;
};

/* The clients of one node, ordered by id. */
struct store_clients {
        struct store_client *v;
        size_t n;
};

struct store_server {
        struct store_server_ops ops;
        void *ctx;
        struct topology topology;
        uint32_t *ranks;    /* by node: from ranks[ranks_at[i]] to before ranks_at[i + 1] */
        uint32_t *ranks_at; /* per node, and the end */
        struct store *store;
        struct store_clients *clients; /* per node */
        bool *has_joined;              /* per rank */
        bool *lost;                    /* per node */
        uint64_t n_in, n_out;          /* messages */
        bool full_told;
        bool stopping; /* the ranks were told to end: their ends are no news */
        struct store_keys lists;
        struct buf out;
};

#define OWNER_HEAD UINT64_MAX /* of requests of the head itself, whose answers nothing reads */

static uint64_t make_owner(int node, uint32_t client)
{
        return (uint64_t)node << 32 | client;
}

/* Returns the client, with @add a new one if there is none, else NULL. */
static struct store_client *find_store_client(struct store_server *r, int node, uint32_t id,
                                              bool add)
{
        struct store_clients *c = &r->clients[node];
        size_t low = 0, high = c->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (c->v[mid].id < id)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (low < c->n && c->v[low].id == id)
                return &c->v[low];
        if (!add)
                return NULL;
        /* The array is full when n is a power of two, or 0. */
        if (!(c->n & (c->n - 1)))
                c->v = xrealloc(c->v, c->n ? c->n * 2 : 1, sizeof(*c->v));
        memmove(c->v + low + 1, c->v + low, (c->n++ - low) * sizeof(*c->v));
        c->v[low] = (struct store_client){ .id = id };
        return &c->v[low];
}

/* Ends the waits of the client without replies. Moves the clients behind: pointers to them
 * change. */
static void remove_store_client(struct store_server *r, int node, struct store_client *gone)
{
        struct store_clients *c = &r->clients[node];
        size_t at = (size_t)(gone - c->v);

        store_forget(r->store, make_owner(node, gone->id));
        memmove(gone, gone + 1, (--c->n - at) * sizeof(*c->v));
}

/* Sends the contents of r->out, followed by @rest. */
static void send_to_node(struct store_server *r, int node, struct bytes rest)
{
        r->n_out++;
        if (!r->lost[node] && !buf_failed(&r->out))
                r->ops.send(r->ctx, node, buf_data(&r->out), buf_len(&r->out), rest);
        /* A reply may have 24 MiB; most replies are small. */
        if (buf_failed(&r->out) || r->out.cap > OUT_KEEP)
                buf_finish(&r->out);
        else
                buf_clear(&r->out);
}

/* The first refusal is told. */
static void tell_full(struct store_server *r, uint64_t owner, const struct store_reply *reply)
{
        int node = (int)(owner >> 32);
        const struct store_client *c = find_store_client(r, node, (uint32_t)owner, false);
        char text[STORE_TEXT_MAX];

        if (r->full_told || !r->ops.full)
                return;
        r->full_told = true;
        snprintf(text, sizeof(text), "%.*s", (int)reply->text.len, (const char *)reply->text.p);
        r->ops.full(r->ctx, node, c ? c->rank : reply->n_whom ? (int)reply->whom[0] : -1, text);
}

/* Sends a reply to the node of the client. A long value is not copied into the frame, but sent
 * behind the head of the frame. */
static void send_reply(void *ctx, uint64_t owner, const struct store_reply *reply)
{
        struct store_server *r = ctx;
        struct store_reply addressed = *reply;
        struct bytes rest = { 0 };

        if (owner == OWNER_HEAD)
                return;
        addressed.client = (uint32_t)owner;
        if (!reply->n_parts && reply->value.len >= LONG_VALUE) {
                rest = reply->value;
                store_reply_encode_head(&r->out, &addressed);
        } else {
                store_reply_encode(&r->out, &addressed);
        }
        send_to_node(r, (int)(owner >> 32), rest);
        if (reply->status == STORE_FULL)
                tell_full(r, owner, reply);
}

static const char *find_host_of_rank(void *ctx, int rank)
{
        struct store_server *r = ctx;

        return r->topology.hosts[r->topology.node_of_rank[rank]];
}

static void refuse_store_request(struct store_server *r, uint64_t owner, uint32_t tag,
                                 const char *text)
{
        send_reply(r, owner,
                   &(struct store_reply){
                           .tag = tag, .status = STORE_INVALID, .text = bytes_of(text) });
}

/* A client tells its rank: accepted only from the node of the rank, since nodes are not trusted
 * with the ranks of others. */
static void on_hello(struct store_server *r, int node, const struct store_request *req)
{
        uint64_t owner = make_owner(node, req->client);
        int rank = (int)req->number;

        if (req->number < 0 || req->number >= r->topology.world_size ||
            r->topology.node_of_rank[req->number] != (uint32_t)node) {
                refuse_store_request(r, owner, req->tag, "no such rank on this node");
                return;
        }
        if (r->clients[node].n >= CLIENTS_MAX && !find_store_client(r, node, req->client, false)) {
                refuse_store_request(r, owner, req->tag, "too many connections of this node");
                return;
        }
        find_store_client(r, node, req->client, true)->rank = rank;
        send_reply(r, owner, &(struct store_reply){ .tag = req->tag, .status = STORE_OK });
        if (!r->has_joined[rank] && r->ops.joined)
                r->ops.joined(r->ctx, rank);
        r->has_joined[rank] = true;
}

/* The same for each client of a world: its nodes, and the node of each rank. */
static void on_topology(struct store_server *r, uint64_t owner, uint32_t tag)
{
        struct buf b = BUF_INIT;

        topology_encode(&b, &r->topology);
        send_reply(r, owner,
                   &(struct store_reply){ .tag = tag,
                                          .status = STORE_OK,
                                          .value = { buf_data(&b), buf_len(&b) } });
        buf_finish(&b);
}

/* Returns a text with a 0 at the end, which the bytes of a request lack. */
static char *copy_request_text(struct bytes b)
{
        char *text = xcalloc(1, b.len + 1);

        if (b.len)
                memcpy(text, b.p, b.len);
        return text;
}

/* Passes a report on to the job. A client waits for the reply to STORE_ABORT only, sent before. */
static void on_report(struct store_server *r, int rank, const struct store_request *req)
{
        char *kind = copy_request_text(req->key), *text = copy_request_text(req->text);

        if (req->op == STORE_REPORT_ERROR && r->ops.report_error)
                r->ops.report_error(r->ctx, rank, kind, text);
        if (req->op == STORE_PROGRESS && r->ops.progress)
                r->ops.progress(r->ctx, rank, req->number, req->total, text);
        if (req->op == STORE_ABORT && r->ops.abort)
                r->ops.abort(r->ctx, rank, (int)MAX(MIN(req->number, INT_MAX), INT_MIN), text);
        free(kind);
        free(text);
}

/* Handles a request of a client, or of the node's relay, which has no rank and asks for many
 * clients: the waits outlive each client. */
static void serve_store_request(struct store_server *r, int node, const struct store_request *req)
{
        bool is_relay = req->client == STORE_NODE;
        uint64_t owner = make_owner(node, req->client);
        struct store_client *c = is_relay ? NULL : find_store_client(r, node, req->client, false);
        bool only_ranks = req->op == STORE_HELLO || req->op == STORE_TOPOLOGY ||
                          req->op == STORE_ABORT || req->op == STORE_REPORT_ERROR ||
                          req->op == STORE_PROGRESS || req->op == STORE_DRAINED;

        if (is_relay ? only_ranks : !c && req->op != STORE_HELLO) {
                if (store_op_has_answer(req->op))
                        refuse_store_request(r, owner, req->tag,
                                             is_relay ? "only a rank can ask for this"
                                                      : "the first request must be HELLO");
                return;
        }
        switch (req->op) {
        case STORE_HELLO:
                on_hello(r, node, req);
                break;
        case STORE_GONE:
                if (is_relay)
                        store_forget(r->store, owner);
                else
                        remove_store_client(r, node, c);
                break;
        case STORE_TOPOLOGY:
                on_topology(r, owner, req->tag);
                break;
        case STORE_ABORT:
                /* The reply goes first: the abort may end the rank's node. */
                send_reply(r, owner, &(struct store_reply){ .tag = req->tag });
                on_report(r, c->rank, req);
                break;
        case STORE_DRAINED:
                send_reply(r, owner, &(struct store_reply){ .tag = req->tag });
                if (r->ops.drained)
                        r->ops.drained(r->ctx, c->rank);
                break;
        case STORE_REPORT_ERROR:
        case STORE_PROGRESS:
                on_report(r, c->rank, req);
                break;
        default:
                store_request(r->store, owner, is_relay ? -1 : c->rank, req);
        }
}

/* A relay names only ranks below it: no node arrives in the place of another. */
static int check_named_ranks(const struct store_server *r, int node,
                             const struct store_request *req, struct error *err)
{
        const struct topology *t = &r->topology;

        for (uint32_t i = 0; i < req->n_ranks; i++) {
                uint32_t rank = req->ranks[i];

                if (rank < t->world_size &&
                    (t->node_of_rank[rank] == (uint32_t)node ||
                     (r->ops.relays && r->ops.relays(r->ctx, node, (int)t->node_of_rank[rank]))))
                        continue;
                return err_set(
                        err, EPROTO,
                        "message out of turn: STORE, %s of rank %u, which does not run there",
                        store_op_name(req->op), rank);
        }
        return 0;
}

/* A request that does not decode, or that names ranks of other nodes, is the fault of the agent. A
 * client's mistake is answered by STORE_INVALID. */
int store_server_receive(struct store_server *r, int node, const void *body, size_t len,
                         struct error *err)
{
        struct store_request req = { 0 };
        int ret = store_keys_decode(&r->lists, &req, body, len, err);

        r->n_in++;
        if (ret < 0)
                return ret;
        ret = check_named_ranks(r, node, &req, err);
        if (ret == 0 && !r->lost[node])
                serve_store_request(r, node, &req);
        store_request_finish(&req);
        return ret;
}

/* Sends an event to every client. Not while the job stops: every rank's end would go to every node.
 */
static void broadcast_event(struct store_server *r, enum store_event_kind kind, int rank, int node,
                            const char *text)
{
        struct store_event event = { .client = STORE_ALL,
                                     .kind = (uint8_t)kind,
                                     .rank = rank,
                                     .node = node,
                                     .text = bytes_of(text) };

        for (uint32_t i = 0; i < r->topology.n_nodes && !r->stopping; i++) {
                store_event_encode(&r->out, &event);
                send_to_node(r, (int)i, (struct bytes){ 0 });
        }
}

/* The event leaves first: a client knows of the rank when its own call fails. */
void store_server_rank_failed(struct store_server *r, int rank, const char *text)
{
        broadcast_event(r, STORE_RANK_FAILED, rank, (int)r->topology.node_of_rank[rank], text);
        store_rank_failed(r->store, rank, text);
}

bool store_server_has_joined(const struct store_server *r, int rank)
{
        return r->has_joined[rank];
}

/* No event: an end with 0 is news only to waits for the rank. */
void store_server_rank_exited(struct store_server *r, int rank)
{
        store_rank_exited(r->store, rank);
}

/* Counts for no rank, and the reply goes nowhere. */
void store_server_set(struct store_server *r, const char *key, const char *value)
{
        struct store_request req = { .op = STORE_SET,
                                     .key = bytes_of(key),
                                     .value = bytes_of(value) };

        store_request(r->store, OWNER_HEAD, -1, &req);
}

bool store_server_has(const struct store_server *r, const char *key)
{
        return store_has(r->store, bytes_of(key));
}

/* The waits of the node go first, without replies; then all clients learn of the node; and then
 * waits for its ranks end. */
void store_server_node_lost(struct store_server *r, int node)
{
        char text[512];

        if (r->lost[node])
                return;
        r->lost[node] = true;
        while (r->clients[node].n)
                remove_store_client(r, node, &r->clients[node].v[r->clients[node].n - 1]);
        store_forget(r->store, make_owner(node, STORE_NODE));
        snprintf(text, sizeof(text), "node %s is lost", r->topology.hosts[node]);
        broadcast_event(r, STORE_NODE_LOST, -1, node, text);
        for (uint32_t i = r->ranks_at[node]; i < r->ranks_at[node + 1]; i++)
                store_rank_failed(r->store, (int)r->ranks[i], text);
}

/* Sent before @stopping is set, which silences all later events. */
void store_server_stop_requested(struct store_server *r, const char *text)
{
        broadcast_event(r, STORE_STOP_REQUESTED, -1, -1, text);
        r->stopping = true;
}

void store_server_limit(struct store_server *r, size_t bytes)
{
        store_limit(r->store, bytes);
}

uint64_t store_server_requests(const struct store_server *r)
{
        return r->n_in;
}

size_t store_server_waiting(const struct store_server *r)
{
        return store_waiting(r->store);
}

uint64_t store_server_met(const struct store_server *r)
{
        return store_met(r->store);
}

struct store_server *store_server_create(const struct store_server_ops *ops, void *ctx,
                                         struct topology topology)
{
        struct store_server *r = xcalloc(1, sizeof(*r));
        const struct topology *t = &r->topology;

        r->ops = *ops;
        r->ctx = ctx;
        r->topology = topology;
        r->has_joined = xcalloc((size_t)t->world_size + 1, sizeof(*r->has_joined));
        r->clients = xcalloc((size_t)t->n_nodes + 1, sizeof(*r->clients));
        r->lost = xcalloc((size_t)t->n_nodes + 1, sizeof(*r->lost));
        /* Sorts the ranks by node, by counting: the loss of many nodes at once stays cheap. Counts
         * are shifted right by one: filling moves each start into place. */
        r->ranks = xcalloc((size_t)t->world_size + 1, sizeof(*r->ranks));
        r->ranks_at = xcalloc((size_t)t->n_nodes + 2, sizeof(*r->ranks_at));
        for (uint32_t i = 0; i < t->world_size; i++)
                r->ranks_at[t->node_of_rank[i] + 2]++;
        for (uint32_t i = 2; i < t->n_nodes + 2; i++)
                r->ranks_at[i] += r->ranks_at[i - 1];
        for (uint32_t i = 0; i < t->world_size; i++)
                r->ranks[r->ranks_at[t->node_of_rank[i] + 1]++] = i;
        r->store = store_create(
                (struct store_ops){ .reply = send_reply, .host_of = find_host_of_rank }, r,
                (int)t->world_size);
        if (!r->store) {
                store_server_destroy(r);
                return NULL;
        }
        return r;
}

void store_server_destroy(struct store_server *r)
{
        if (!r)
                return;
        log_line(LOG_DEBUG, "the store had %" PRIu64 " messages and sent %" PRIu64, r->n_in,
                 r->n_out);
        for (uint32_t i = 0; i < r->topology.n_nodes; i++)
                free(r->clients[i].v);
        free(r->clients);
        store_destroy(r->store);
        topology_finish(&r->topology);
        buf_finish(&r->out);
        store_keys_finish(&r->lists);
        free(r->ranks);
        free(r->ranks_at);
        free(r->has_joined);
        free(r->lost);
        free(r);
}
