/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/macros.h"
#include "base/strv.h"
#include "bench/pair.h"
#include "bench/usage.h"
#include "head/job/store_server.h"
#include "head/nodes/node.h"
#include "head/nodes/send_queue.h"
#include "lib/topology.h"

/* A link that is an accepted socket. */
struct accepted {
        struct link base;
        const struct link_callbacks *cb;
        void *ctx;
        int fd;
};

static struct {
        struct storm *storm;
        uv_loop_t loop;
        struct send_queue send_queue;
        struct transport transport;
        struct accepted *links;
        struct host *hosts;
        const char **names;
        struct node *nodes;
        struct store_server *store_server;
        struct agent_binaries agent_binaries; /* never asked for: the agents run */
        uint32_t n_opened, n_ready, n_gone;
        int64_t begin, cpu_before; /* of the first order */
        bool failed;
} head;

static struct link *accepted_open(struct transport *t, const struct link_target *to UNUSED,
                                  const struct link_callbacks *cb, void *ctx,
                                  struct error *err UNUSED)
{
        struct accepted *a = &head.links[head.n_opened++];

        a->base.transport = t;
        a->cb = cb;
        a->ctx = ctx;
        return &a->base;
}

static void accepted_close(struct link *l UNUSED)
{
}

static const struct transport_ops accepted_ops = { .open = accepted_open, .close = accepted_close };

/* --- as the job does it ----------------------------------------------------------------------- */

static void store_send(void *ctx UNUSED, int node, const void *start, size_t len, struct bytes rest)
{
        struct node *n = &head.nodes[node];

        if (n->state != NODE_RUNNING)
                return;
        store_encode_head(&n->out, start, len, rest.len);
        if (rest.len)
                node_out_long(n, rest.p, rest.len);
        send_queue_add(&head.send_queue, n);
}

static int message(void *ctx UNUSED, struct node *n, const struct frame *f, struct error *err)
{
        return f->type == MSG_STORE
                       ? store_server_receive(head.store_server, n->index, f->body, f->len, err)
                       : 0;
}

static void start(void)
{
        struct ping ping = { 0 };

        head.begin = usage_now_ns();
        head.cpu_before = usage_of(getpid()).cpu_ns;
        for (uint32_t i = 0; i < head.storm->n_nodes; i++) {
                struct node *n = &head.nodes[i];

                node_launched(n);
                ping_encode(&n->out, MSG_PING, &ping);
                node_flush(n);
        }
}

static void changed(void *ctx UNUSED, struct node *n, enum node_state was UNUSED)
{
        uint32_t all = head.storm->n_nodes;

        if (n->state == NODE_READY && ++head.n_ready == all)
                start();
        if (n->state == NODE_GONE && ++head.n_gone == all)
                uv_stop(&head.loop);
        if (n->state != NODE_FAILED)
                return;
        fprintf(stderr, "storm: node %d: %s\n", n->index, n->failure->fact);
        head.failed = true;
        uv_stop(&head.loop);
}

static void uploading(void *ctx UNUSED, struct node *n UNUSED)
{
}

static void phase(void *ctx UNUSED, struct node *n UNUSED, enum link_phase p UNUSED)
{
}

static void noise(void *ctx UNUSED, struct node *n UNUSED, const char *text UNUSED,
                  size_t len UNUSED)
{
}

static const struct node_ops node_ops = {
        .changed = changed,
        .uploading = uploading,
        .phase = phase,
        .message = message,
        .noise = noise,
};

/* ---------------------------------------------------------------------------------------------- */

static void make_rendezvous(void)
{
        const struct storm *s = head.storm;
        struct store_server_ops ops = { .send = store_send };
        int *node_of_rank = xcalloc(s->n_ranks, sizeof(*node_of_rank));

        for (uint32_t i = 0; i < s->n_ranks; i++)
                node_of_rank[i] = (int)(i / s->per_node);
        head.store_server = store_server_create(
                &ops, NULL,
                make_topology((int)s->n_ranks, (int)s->n_nodes, node_of_rank, head.names));
        free(node_of_rank);
}

static void make_nodes(int listener)
{
        uint32_t n = head.storm->n_nodes;

        head.links = xcalloc(n, sizeof(*head.links));
        head.hosts = xcalloc(n, sizeof(*head.hosts));
        head.names = xcalloc(n, sizeof(*head.names));
        head.nodes = xcalloc(n, sizeof(*head.nodes));
        for (uint32_t i = 0; i < n; i++) {
                char name[32];

                snprintf(name, sizeof(name), "node%05u", i);
                head.hosts[i].name = xstrdup(name);
                head.names[i] = head.hosts[i].name;
                head.links[i].fd = pair_accept(listener);
                node_init(&head.nodes[i], &head.loop, (int)i, &head.hosts[i], &head.agent_binaries,
                          &node_ops, NULL);
                node_connect(&head.nodes[i], &head.transport, NULL, 300 * 1000);
        }
}

bool storm_head(struct storm *s, int listener)
{
        struct usage u;

        head.storm = s;
        head.transport.ops = &accepted_ops;
        uv_loop_init(&head.loop);
        send_queue_init(&head.send_queue, &head.loop);
        make_nodes(listener);
        make_rendezvous();
        for (uint32_t i = 0; i < s->n_nodes; i++)
                head.links[i].cb->opened(head.links[i].ctx, head.links[i].fd);
        uv_run(&head.loop, UV_RUN_DEFAULT);
        u = usage_of(getpid());
        s->real.wall_ns = usage_now_ns() - head.begin;
        s->real.head_ns = u.cpu_ns - head.cpu_before;
        s->real.head_kb = u.peak_kb;
        return !head.failed;
}
