/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/scale.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/strv.h"
#include "bench/peers.h"
#include "bench/usage.h"
#include "store/relay/relay.h"
#include "wire/check_msg.h"
#include "wire/endpoint_msg.h"
#include "wire/measure_msg.h"
#include "wire/msg.h"
#include "wire/status_msg.h"

enum { GPUS = 8, PORT = 29400 };

struct agent;

struct rank {
        struct relay_client *client;
        struct agent *agent;
        uint32_t number;
        bool helloed, ended;
};

struct agent {
        struct relay *relay;
        struct peer *peer;
        struct rank *ranks; /* NULL = all have ended */
        uint32_t n_ranks;
        uint64_t pongs;
};

static struct {
        struct scale *scale;
        struct peers peers;
        struct agent *v;
        uint32_t n_met; /* ranks that have left the barrier */
        uint32_t n_here;
        int64_t idle_end; /* 0 = the barrier is not over */
        uint64_t pongs_before;
        bool over; /* the ranks have been told to end */
} all;

static _Noreturn void wrong(const struct agent *a, const char *what)
{
        fprintf(stderr, "scale: node %u: %s\n", a->peer->index, what);
        _exit(1);
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void ask(struct rank *r, uint8_t op, uint32_t tag)
{
        relay_request(r->client, &(struct store_request){ .op = op,
                                                          .tag = tag,
                                                          .key = bytes_of("all are there"),
                                                          .number = r->number });
}

static void replied(void *ctx, const struct store_reply *reply)
{
        struct rank *r = ctx;

        if (reply->status != STORE_OK)
                wrong(r->agent, "the store refuses");
        if (r->helloed) {
                all.n_met++;
                return;
        }
        r->helloed = true;
        ask(r, STORE_BARRIER, 2);
}

static void start_rank(struct agent *a, struct rank *r, uint32_t number)
{
        static const struct relay_client_ops ops = { .reply = replied };
        struct started m = { number, 1000 + number };

        *r = (struct rank){ .agent = a, .number = number };
        r->client = relay_client_create(a->relay, ops, r);
        started_encode(&a->peer->out, &m);
        ask(r, STORE_HELLO, 1);
}

/* As the agent tells it: both streams are at their end, the process is gone. */
static void end_rank(struct agent *a, struct rank *r, int status, bool stopped)
{
        struct exited m = { .rank = r->number,
                            .pid = 1000 + r->number,
                            .status = (uint32_t)status,
                            .mono_ns = (uint64_t)usage_now_ns(),
                            .stopped = stopped };

        if (r->ended)
                return;
        r->ended = true;
        relay_client_destroy(r->client);
        for (uint8_t s = MSG_STDOUT; s <= MSG_STDERR; s++)
                output_encode(&a->peer->out, &(struct output){ .rank = r->number, .stream = s });
        exited_encode(&a->peer->out, &m);
        peers_touch(&all.peers, a->peer);
}

/* --- agents ----------------------------------------------------------------------------------- */

static void up(void *ctx, const void *body, size_t len)
{
        struct agent *a = ctx;

        store_encode(&a->peer->out, body, len);
}

static void launch(struct agent *a, const struct launch_order *m)
{
        a->relay = relay_create((struct relay_ops){ .up = up }, a);
        a->n_ranks = m->n_ranks;
        a->ranks = xcalloc(a->n_ranks, sizeof(*a->ranks));
        for (uint32_t i = 0; i < a->n_ranks; i++)
                start_rank(a, &a->ranks[i], m->ranks[i].rank);
}

static void end(struct agent *a, int status, bool stopped)
{
        for (uint32_t i = 0; i < a->n_ranks; i++)
                end_rank(a, &a->ranks[i], status, stopped);
        relay_turn(a->relay);
        relay_destroy(a->relay);
        free(a->ranks);
        a->ranks = NULL;
        a->relay = NULL;
        empty_encode(&a->peer->out, MSG_GONE);
        peers_touch(&all.peers, a->peer);
}

/* What all have in common is nothing to these. */
static int on_common(struct agent *a UNUSED, const struct frame *f UNUSED, struct error *err UNUSED)
{
        return 0;
}

static int on_launch(struct agent *a, const struct frame *f, struct error *err)
{
        struct launch_order m = { 0 };

        if (launch_order_decode(&m, f, err) < 0)
                return -1;
        launch(a, &m);
        launch_order_finish(&m);
        return 0;
}

static int on_store(struct agent *a, const struct frame *f, struct error *err)
{
        return a->relay ? relay_deliver(a->relay, f->body, f->len, err) : 0;
}

static int on_stop(struct agent *a, const struct frame *f, struct error *err)
{
        uint32_t grace_ms;

        if (number_decode(&grace_ms, f, err) < 0)
                return -1;
        if (a->relay)
                end(a, SIGTERM, true);
        return 0;
}

static int on_ping(struct agent *a, const struct frame *f, struct error *err)
{
        struct ping m;

        if (ping_decode(&m, f, err) < 0)
                return -1;
        m.agent_ns = (uint64_t)usage_now_ns();
        ping_encode(&a->peer->out, MSG_PONG, &m);
        a->pongs++;
        return 0;
}

static int on_endpoint(struct agent *a, const struct frame *f, struct error *err)
{
        struct endpoint_opened answer = { .port = PORT };
        struct endpoint_order m;

        if (endpoint_order_decode(&m, f, err) < 0)
                return -1;
        endpoint_order_finish(&m);
        endpoint_opened_encode(&a->peer->out, &answer);
        return 0;
}

static int on_probe(struct agent *a, const struct frame *f, struct error *err)
{
        struct probe_order m;
        struct probed answer;

        if (probe_order_decode(&m, f, err) < 0)
                return -1;
        answer.n = (uint32_t)m.addrs.n;
        answer.results = xcalloc(answer.n, sizeof(*answer.results));
        for (uint32_t i = 0; i < answer.n; i++)
                answer.results[i] = (struct probe_result){ .iface = "eth0", .us = 200 };
        probed_encode(&a->peer->out, &answer);
        probed_finish(&answer);
        probe_order_finish(&m);
        return 0;
}

static int on_ask(struct agent *a, const struct frame *f, struct error *err)
{
        struct node_status m = { 0 };

        if (number_decode(&m.number, f, err) < 0)
                return -1;
        node_status_encode(&a->peer->out, &m);
        return 0;
}

/* What came and went before is the connection, and no part of the check. */
static int on_check(struct agent *a, const struct frame *f, struct error *err)
{
        struct check_order m = { 0 };

        if (check_order_decode(&m, f, err) < 0)
                return -1;
        a->peer->writes = a->peer->written = 0;
        a->peer->read = FRAME_HEADER + f->len;
        scale_answer_check(&a->peer->out, a->peer->index, &m);
        check_order_finish(&m);
        return 0;
}

static int on_measure(struct agent *a, const struct frame *f, struct error *err)
{
        struct measure_order m = { 0 };

        if (measure_order_decode(&m, f, err) < 0)
                return -1;
        scale_answer_measure(&a->peer->out, &m);
        measure_order_finish(&m);
        return 0;
}

static void leave(struct agent *a)
{
        peers_leave(&all.peers, a->peer);
        all.n_here--;
}

static int on_bye(struct agent *a, const struct frame *f UNUSED, struct error *err UNUSED)
{
        leave(a);
        return 0;
}

static void arrived(void *ctx UNUSED, struct peer *p)
{
        static int (*const on[256])(struct agent *, const struct frame *, struct error *) = {
                [MSG_LAUNCH] = on_launch,   [MSG_STORE] = on_store,
                [MSG_PING] = on_ping,       [MSG_ENDPOINT] = on_endpoint,
                [MSG_PROBE] = on_probe,     [MSG_STATUS_REQUEST] = on_ask,
                [MSG_BYE] = on_bye,         [MSG_STOP] = on_stop,
                [MSG_COMMON] = on_common,   [MSG_CHECK] = on_check,
                [MSG_MEASURE] = on_measure,
        };
        struct agent *a = &all.v[p->index];
        struct error err = { .text = "the head sends what no agent of this test knows" };
        struct frame f;

        while (frame_peek(&p->in, &f, &err) > 0) {
                if (!on[f.type] || on[f.type](a, &f, &err) < 0)
                        wrong(a, err.text);
                frame_consume(&p->in, &f);
        }
}

static void turn(void *ctx UNUSED, struct peer *p)
{
        if (all.v[p->index].relay)
                relay_turn(all.v[p->index].relay);
}

/* --- all together ----------------------------------------------------------------------------- */

static uint64_t count_pongs(void)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < all.scale->n_nodes; i++)
                n += all.v[i].pongs;
        return n;
}

static void note_traffic(void)
{
        for (uint32_t i = 0; i < all.scale->n_nodes; i++) {
                const struct peer *p = &all.peers.v[i];

                all.scale->floor->traffic[i] =
                        (struct storm_traffic){ p->writes, p->written, p->read };
        }
}

/* From here on only pings. */
static void begin_idle(void)
{
        scale_mark(all.scale, SCALE_BARRIER);
        all.idle_end = usage_now_ns() + all.scale->idle_s * INT64_C(1000000000);
        all.pongs_before = count_pongs();
        for (uint32_t i = 0; i < all.scale->n_nodes && all.scale->idle_s; i++)
                all.peers.v[i].writes = all.peers.v[i].written = all.peers.v[i].read = 0;
}

static void end_idle(void)
{
        scale_mark(all.scale, SCALE_IDLE);
        all.scale->pings = count_pongs() - all.pongs_before;
        if (all.scale->idle_s)
                note_traffic();
        all.over = true;
        if (all.scale->end == SCALE_FAIL)
                end_rank(&all.v[0], &all.v[0].ranks[0], SCALE_CODE << 8, false);
        for (uint32_t i = 0; i < all.scale->n_nodes; i++)
                if (all.scale->end == SCALE_WELL)
                        end(&all.v[i], 0, false);
                else if (all.scale->end == SCALE_LOSE && i % 2 == 0)
                        leave(&all.v[i]);
}

static int next(void *ctx UNUSED)
{
        if (all.n_here == 0)
                return -2;
        if (all.n_met < all.scale->n_ranks || all.over)
                return -1;
        if (!all.idle_end)
                begin_idle();
        if (usage_now_ns() >= all.idle_end) {
                end_idle();
                return -1;
        }
        return (int)((all.idle_end - usage_now_ns()) / 1000000) + 1;
}

/* What a node of eight GPUs and two networks tells. */
static void greet(struct agent *a)
{
        struct msg_addr addrs[2] = { { .iface = "eth0", .prefix = 8 },
                                     { .iface = "ib0", .prefix = 8 } };
        struct hello h = { .version = MSG_VERSION,
                           .pid = 4000,
                           .uid = 1000,
                           .cores = 96,
                           .arch = "x86_64",
                           .memory = UINT64_C(1) << 40,
                           .nofile = 1 << 20,
                           .mono_ns = (uint64_t)usage_now_ns(),
                           .free_port = PORT,
                           .n_gpus = GPUS,
                           .n_addrs = ARRAY_SIZE(addrs) };
        struct msg_gpu gpus[GPUS];
        uint32_t i = a->peer->index;

        for (uint32_t g = 0; g < GPUS; g++) {
                gpus[g] = (struct msg_gpu){ .index = g, .name = "NVIDIA H100 80GB HBM3" };
                snprintf(gpus[g].uuid, sizeof(gpus[g].uuid), "GPU-%08x-0000-4000-8000-%012x", i, g);
        }
        h.gpus = gpus;
        h.addrs = addrs;
        snprintf(h.host, sizeof(h.host), "node%05u.cluster.example", i);
        for (int k = 0; k < 2; k++)
                snprintf(addrs[k].addr, sizeof(addrs[k].addr), "%d.%u.%u.%u", 10 + k, i >> 16,
                         i >> 8 & 255, i & 255);
        memcpy(h.ssh_addr, addrs[0].addr, sizeof(h.ssh_addr));
        buf_append(&a->peer->out, MSG_MAGIC, strlen(MSG_MAGIC));
        hello_encode(&a->peer->out, &h);
        peers_touch(&all.peers, a->peer);
}

bool scale_agents(struct scale *s, const char *name)
{
        all.scale = s;
        all.n_here = s->n_nodes;
        all.peers.ops = (struct peers_ops){ .arrived = arrived, .turn = turn, .next = next };
        if (!peers_connect(&all.peers, name, s->n_nodes)) {
                perror("scale: connect");
                return false;
        }
        all.v = xcalloc(s->n_nodes, sizeof(*all.v));
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                all.v[i].peer = &all.peers.v[i];
                greet(&all.v[i]);
        }
        if (!peers_run(&all.peers)) {
                fputs("scale: the head has closed a link\n", stderr);
                return false;
        }
        if (!s->idle_s)
                note_traffic();
        return true;
}
