/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "agent/endpoint/endpoint_unix.h"
#include "base/buf.h"
#include "base/macros.h"
#include "head/job/store_server.h"
#include "lib/topology.h"
#include "store/relay/relay.h"
#include "wire/env_names.h"
#include "wire/msg.h"

enum { MAX_NODES = 8 };

struct node {
        struct world *world;
        struct relay *relay;
        struct endpoint_unix *endpoint;
        struct buf up; /* frames for the rendezvous */
        char path[64];
};

struct world {
        uv_loop_t loop;
        uv_signal_t child;
        uv_timer_t limit;
        uv_prepare_t turn;
        struct store_server *store_server;
        struct node nodes[MAX_NODES];
        int n, n_nodes, running;
        pid_t pids[64];
        char dir[32];
        struct world_result *result;
};

static void up(void *ctx, const void *body, size_t len)
{
        struct node *node = ctx;

        store_encode(&node->up, body, len);
}

static void down(void *ctx, int node, const void *head, size_t len, struct bytes rest)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        struct world *w = ctx;
        struct error err;

        buf_append(&b, head, len);
        buf_append(&b, rest.p, rest.len);
        if (relay_deliver(w->nodes[node].relay, buf_data(&b), buf_len(&b), &err) < 0)
                fprintf(stderr, "relay: %s\n", err.text);
}

/* Gives the frames of one node to the rendezvous; answers may make new ones. */
static bool carry(struct node *node)
{
        struct world *w = node->world;
        struct buf frames = node->up;
        struct frame f;
        struct error err;

        node->up = (struct buf)BUF_INIT;
        if (!buf_len(&frames))
                return false;
        while (frame_peek(&frames, &f, NULL) > 0) {
                if (store_server_receive(w->store_server, (int)(node - w->nodes), f.body, f.len,
                                         &err) < 0)
                        fprintf(stderr, "rendezvous: %s\n", err.text);
                frame_consume(&frames, &f);
        }
        buf_finish(&frames);
        return true;
}

static void on_turn(uv_prepare_t *h)
{
        struct world *w = h->data;
        bool more = true;

        while (more) {
                more = false;
                for (int i = 0; i < w->n_nodes; i++) {
                        relay_turn(w->nodes[i].relay);
                        more |= carry(&w->nodes[i]);
                }
        }
}

static void on_joined(void *ctx, int rank)
{
        ((struct world *)ctx)->result->joined[rank] = true;
}

static void on_report(void *ctx, int rank, const char *kind, const char *text)
{
        struct world_result *r = ((struct world *)ctx)->result;

        r->n_reports++;
        snprintf(r->report, sizeof(r->report), "%d %s: %s", rank, kind, text);
}

static void on_abort(void *ctx, int rank, int code, const char *text)
{
        struct world_result *r = ((struct world *)ctx)->result;

        r->abort_code = code;
        snprintf(r->abort_text, sizeof(r->abort_text), "%d: %s", rank, text);
}

static void on_progress(void *ctx, int rank UNUSED, int64_t step, int64_t total UNUSED,
                        const char *note UNUSED)
{
        ((struct world *)ctx)->result->progress += (long)step;
}

static void leave(struct world *w)
{
        for (int i = 0; i < w->n_nodes; i++) {
                endpoint_unix_destroy(w->nodes[i].endpoint);
                w->nodes[i].endpoint = NULL;
        }
        uv_close((uv_handle_t *)&w->child, NULL);
        uv_close((uv_handle_t *)&w->limit, NULL);
        uv_close((uv_handle_t *)&w->turn, NULL);
}

static void ended(struct world *w, int rank, int status)
{
        char text[128];

        w->result->status[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        w->pids[rank] = 0;
        snprintf(text, sizeof(text), "rank %d ended with %d", rank, w->result->status[rank]);
        if (status == 0)
                store_server_rank_exited(w->store_server, rank);
        else
                store_server_rank_failed(w->store_server, rank, text);
        if (--w->running == 0)
                leave(w);
}

static void on_child(uv_signal_t *h, int signo UNUSED)
{
        struct world *w = h->data;
        int status;

        for (int i = 0; i < w->n; i++)
                if (w->pids[i] > 0 && waitpid(w->pids[i], &status, WNOHANG) > 0)
                        ended(w, i, status);
}

/* A rank that hangs must not hang the test run. */
static void on_limit(uv_timer_t *h)
{
        struct world *w = h->data;

        for (int i = 0; i < w->n; i++)
                if (w->pids[i] > 0)
                        kill(w->pids[i], SIGKILL);
}

static void set_number(const char *name, int value)
{
        char text[16];

        snprintf(text, sizeof(text), "%d", value);
        setenv(name, text, 1);
}

static void become_rank(const struct world *w, int rank, int (*rank_main)(void))
{
        int per_node = w->n / w->n_nodes;

        set_number(HN_RANK, rank);
        set_number(HN_WORLD_SIZE, w->n);
        set_number(HN_LOCAL_RANK, rank % per_node);
        set_number(HN_LOCAL_WORLD_SIZE, per_node);
        set_number(HN_NODE_RANK, rank / per_node);
        set_number(HN_NUM_NODES, w->n_nodes);
        setenv(HN_STORE, w->nodes[rank / per_node].path, 1);
        signal(SIGPIPE, SIG_DFL);
        exit(rank_main());
}

static int open_endpoints(struct world *w)
{
        struct error err;

        for (int i = 0; i < w->n_nodes; i++) {
                struct node *node = &w->nodes[i];

                node->world = w;
                snprintf(node->path, sizeof(node->path), "%s/n%d/store", w->dir, i);
                node->relay = relay_create((struct relay_ops){ .up = up }, node);
                node->endpoint = endpoint_unix_create(&w->loop, node->path, node->relay, &err);
                if (node->endpoint)
                        continue;
                fprintf(stderr, "%s\n", err.text);
                return -1;
        }
        return 0;
}

static int world_make(struct world *w)
{
        static const struct store_server_ops ops = { .send = down,
                                                     .joined = on_joined,
                                                     .report_error = on_report,
                                                     .abort = on_abort,
                                                     .progress = on_progress };
        static const char *const hosts[MAX_NODES] = { "node0", "node1", "node2", "node3",
                                                      "node4", "node5", "node6", "node7" };
        int node_of[64];

        for (int i = 0; i < w->n; i++)
                node_of[i] = i / (w->n / w->n_nodes);
        strcpy(w->dir, "/tmp/hn-world-XXXXXX");
        if (!mkdtemp(w->dir) || uv_loop_init(&w->loop) < 0)
                return -1;
        w->store_server =
                store_server_create(&ops, w, make_topology(w->n, w->n_nodes, node_of, hosts));
        return open_endpoints(w);
}

int world_run(int n, int nodes, int (*rank_main)(void), struct world_result *ret)
{
        struct world w = { .n = n, .n_nodes = nodes, .running = n, .result = ret };

        memset(ret, 0, sizeof(*ret));
        signal(SIGPIPE, SIG_IGN); /* as the agent: a rank may end before its answer comes */
        if (world_make(&w) < 0)
                return -1;
        uv_signal_init(&w.loop, &w.child);
        uv_timer_init(&w.loop, &w.limit);
        uv_prepare_init(&w.loop, &w.turn);
        w.child.data = w.limit.data = w.turn.data = &w;
        uv_prepare_start(&w.turn, on_turn);
        uv_signal_start(&w.child, on_child, SIGCHLD);
        uv_timer_start(&w.limit, on_limit, 100000, 0);
        fflush(NULL);
        for (int i = 0; i < n; i++) {
                w.pids[i] = fork();
                if (w.pids[i] == 0)
                        become_rank(&w, i, rank_main);
        }
        uv_run(&w.loop, UV_RUN_DEFAULT);
        for (int i = 0; i < nodes; i++) {
                relay_destroy(w.nodes[i].relay);
                buf_finish(&w.nodes[i].up);
        }
        store_server_destroy(w.store_server);
        rmdir(w.dir);
        return uv_loop_close(&w.loop) < 0 ? -1 : 0;
}
