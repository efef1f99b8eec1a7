/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each server has a struct world_server as its context. The callbacks add the number of the world's
 * rank 0 to a rank and go on to the job's callbacks; the functions subtract the number.
 */
#include "head/job/world_servers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/model/plan.h"

struct world_server {
        struct world_servers *all;
        struct store_server *server;
        uint32_t world;
        int first; /* number in the job of its rank 0 */
};

struct world_servers {
        struct world_servers_ops ops;
        void *ctx;
        const struct plan *plan;
        struct world_server *v; /* by world */
        size_t n;
        size_t limit;
};

/* --- callbacks: ranks of a world get their numbers in the job --- */

/* The agent finds the clients by the world, so the message has its number. */
static void on_world_send(void *ctx, int node, const void *head, size_t len, struct bytes rest)
{
        const struct world_server *s = ctx;

        s->all->ops.send(s->all->ctx, s->world, node, head, len, rest);
}

static void on_world_joined(void *ctx, int rank)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.joined(s->all->ctx, s->first + rank);
}

static void on_world_error(void *ctx, int rank, const char *kind, const char *text)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.report_error(s->all->ctx, s->first + rank, kind, text);
}

static void on_world_abort(void *ctx, int rank, int code, const char *text)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.abort(s->all->ctx, s->first + rank, code, text);
}

static void on_world_progress(void *ctx, int rank, int64_t step, int64_t total, const char *note)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.progress(s->all->ctx, s->first + rank, step, total, note);
}

static void on_world_drained(void *ctx, int rank)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.drained(s->all->ctx, s->first + rank);
}

static bool on_world_relays(void *ctx, int node, int other)
{
        const struct world_server *s = ctx;

        return s->all->ops.of_rank.relays(s->all->ctx, node, other);
}

/* A relay that names no rank has -1, which is no number in the world. */
static void on_world_full(void *ctx, int node, int rank, const char *text)
{
        const struct world_server *s = ctx;

        s->all->ops.of_rank.full(s->all->ctx, node, rank < 0 ? rank : s->first + rank, text);
}

/* --- life cycle --- */

/* The topology of a world, which the server takes over. Ranks are counted in the world, nodes in
 * the job: a node without ranks of the world has a place, too. */
static struct topology make_topology(const struct plan *plan, const struct plan_world *world,
                                     const char *const *hosts)
{
        struct topology t = { .n_nodes = (uint32_t)plan->n_nodes,
                              .world_size = (uint32_t)world->size };

        t.hosts = xcalloc(t.n_nodes, sizeof(*t.hosts));
        for (uint32_t i = 0; i < t.n_nodes; i++)
                t.hosts[i] = xstrdup(hosts[i]);
        t.node_of_rank = xcalloc(t.world_size, sizeof(*t.node_of_rank));
        for (uint32_t i = 0; i < t.world_size; i++)
                t.node_of_rank[i] = (uint32_t)plan->ranks[(uint32_t)world->first + i].node;
        return t;
}

/* Makes an empty store, with the limit of all. */
static void open_world_server(struct world_server *s, const char *const *hosts)
{
        static const struct store_server_ops of_world = {
                .send = on_world_send,
                .joined = on_world_joined,
                .report_error = on_world_error,
                .abort = on_world_abort,
                .progress = on_world_progress,
                .drained = on_world_drained,
                .relays = on_world_relays,
                .full = on_world_full,
        };
        const struct plan *plan = s->all->plan;

        s->server = store_server_create(&of_world, s,
                                        make_topology(plan, &plan->worlds[s->world], hosts));
        store_server_limit(s->server, s->all->limit);
}

/* All stores exist from the launch on, also those of worlds to begin later: a key that the head
 * sets meanwhile waits there for the first rank. */
struct world_servers *world_servers_create(const struct world_servers_ops *ops, void *ctx,
                                           const struct plan *plan, const char *const *hosts,
                                           size_t limit)
{
        struct world_servers *w = xcalloc(1, sizeof(*w));

        *w = (struct world_servers){
                .ops = *ops, .ctx = ctx, .plan = plan, .n = plan->n_worlds, .limit = limit
        };
        w->v = xcalloc(w->n, sizeof(*w->v));
        for (size_t i = 0; i < w->n; i++) {
                struct world_server *s = &w->v[i];

                *s = (struct world_server){ .all = w,
                                            .world = (uint32_t)i,
                                            .first = plan->worlds[i].first };
                open_world_server(s, hosts);
        }
        return w;
}

/* Keys, waits and clients of the world go, so all ranks of it must have ended. */
void world_servers_renew(struct world_servers *w, uint32_t world, const char *const *hosts)
{
        store_server_destroy(w->v[world].server);
        open_world_server(&w->v[world], hosts);
}

void world_servers_destroy(struct world_servers *w)
{
        if (!w)
                return;
        for (size_t i = 0; i < w->n; i++)
                store_server_destroy(w->v[i].server);
        free(w->v);
        free(w);
}

/* --- one world --- */

/* Ranks have their number in the job, here and in the functions below. */
static const struct world_server *server_of_rank(const struct world_servers *w, int rank)
{
        return &w->v[w->plan->ranks[rank].world];
}

/* A world beyond the last is a fault of the agent. */
int world_servers_receive(struct world_servers *w, uint32_t world, int node, const void *body,
                          size_t len, struct error *err)
{
        if (world >= w->n)
                return err_set(err, EPROTO, "a request to the store of world %u of %zu", world,
                               w->n);
        return store_server_receive(w->v[world].server, node, body, len, err);
}

void world_servers_rank_failed(struct world_servers *w, int rank, const char *text)
{
        const struct world_server *s = server_of_rank(w, rank);

        store_server_rank_failed(s->server, rank - s->first, text);
}

void world_servers_rank_exited(struct world_servers *w, int rank)
{
        const struct world_server *s = server_of_rank(w, rank);

        store_server_rank_exited(s->server, rank - s->first);
}

bool world_servers_has_joined(const struct world_servers *w, int rank)
{
        const struct world_server *s = server_of_rank(w, rank);

        return store_server_has_joined(s->server, rank - s->first);
}

bool world_servers_has(const struct world_servers *w, uint32_t world, const char *key)
{
        return store_server_has(w->v[world].server, key);
}

uint64_t world_servers_met(const struct world_servers *w, uint32_t world)
{
        return store_server_met(w->v[world].server);
}

/* --- all worlds --- */

/* A node may have ranks of several worlds: what concerns a node goes to all stores. */
void world_servers_set(struct world_servers *w, const char *key, const char *value)
{
        for (size_t i = 0; i < w->n; i++)
                store_server_set(w->v[i].server, key, value);
}

void world_servers_node_lost(struct world_servers *w, int node)
{
        for (size_t i = 0; i < w->n; i++)
                store_server_node_lost(w->v[i].server, node);
}

void world_servers_stop_requested(struct world_servers *w, const char *text)
{
        for (size_t i = 0; i < w->n; i++)
                store_server_stop_requested(w->v[i].server, text);
}

/* The sum falls when a world gets an empty store. */
uint64_t world_servers_requests(const struct world_servers *w)
{
        uint64_t n = 0;

        for (size_t i = 0; i < w->n; i++)
                n += store_server_requests(w->v[i].server);
        return n;
}

size_t world_servers_waiting(const struct world_servers *w)
{
        size_t n = 0;

        for (size_t i = 0; i < w->n; i++)
                n += store_server_waiting(w->v[i].server);
        return n;
}
