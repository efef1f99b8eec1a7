/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/storm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/strv.h"
#include "bench/peers.h"
#include "bench/usage.h"
#include "store/relay/relay.h"
#include "wire/msg.h"

enum { ID_SIZE = 128, RANKS_PER_ROOT = 128, POLL_NS = 10000000, KEY_ROOM = 64 };

struct rank {
        struct relay_client *client;
        struct agent *agent;
        uint32_t number, tag, awaited;
        unsigned step;
        int64_t due;
        struct rank *next; /* of those that sleep */
};

struct agent {
        struct relay *relay;
        struct peer *peer;
        struct rank *ranks;
        uint32_t n_ranks, n_done;
};

static struct {
        struct storm *storm;
        struct peers peers;
        struct agent *v;
        struct bytes *ids; /* the keys of the roots */
        uint32_t n_roots, n_left;
        struct rank *sleepers, **last_sleeper;
        int64_t begin_cpu;
} all = { .last_sleeper = &all.sleepers };

static _Noreturn void wrong(const struct rank *r, const struct store_reply *reply)
{
        fprintf(stderr, "storm: rank %u, step %u: status %u, number %lld, %zu bytes\n", r->number,
                r->step, reply->status, (long long)reply->number, reply->value.len);
        _exit(1);
}

/* --- what a rank does ------------------------------------------------------------------------- */

static void tell(struct rank *r, struct store_request req)
{
        req.tag = ++r->tag;
        relay_request(r->client, &req);
}

/* The answer is the next step. */
static void ask(struct rank *r, struct store_request req)
{
        r->awaited = r->tag + 1;
        tell(r, req);
}

static void ask_add(struct rank *r, const char *key, int64_t number)
{
        ask(r, (struct store_request){ .op = STORE_ADD, .key = bytes_of(key), .number = number });
}

static void done(struct rank *r)
{
        struct agent *a = r->agent;

        if (++a->n_done < a->n_ranks)
                return;
        empty_encode(&a->peer->out, MSG_GONE);
        all.n_left--;
}

/* Returns true at the end. Keys are as long as on PyTorch's wire. */
static bool nccl(struct rank *r, const struct store_reply *reply)
{
        struct store_request many = { .keys = all.ids, .n_keys = all.n_roots };
        static const char id[ID_SIZE];

        switch (r->step) {
        case 0:
                ask_add(r, "init/", 1);
                return false;
        case 1:
                if (r->number % RANKS_PER_ROOT == 0)
                        tell(r, (struct store_request){ .op = STORE_SET,
                                                        .key = all.ids[r->number / RANKS_PER_ROOT],
                                                        .value = { id, sizeof(id) } });
                many.op = STORE_WAIT;
                ask(r, many);
                return false;
        case 2:
                many.op = STORE_FETCH;
                ask(r, many);
                return false;
        default:
                if (reply->number != all.n_roots ||
                    reply->value.len != all.n_roots * (size_t)(8 + ID_SIZE))
                        wrong(r, reply);
                return true;
        }
}

static void sleep_then_step(struct rank *r)
{
        r->due = usage_now_ns() + POLL_NS;
        r->next = NULL;
        *all.last_sleeper = r;
        all.last_sleeper = &r->next;
}

static const char barrier_key[] = "//worker/attempt_0/default_pg/0/store_based_barrier_key:1";
static const char last_key[] = "/default_pg/0//store_based_barrier_key:0:last_worker";

static bool poll(struct rank *r, const struct store_reply *reply)
{
        if (r->step == 0)
                ask_add(r, barrier_key, 1);
        else if (r->step == 1 || !reply)
                ask_add(r, barrier_key, 0);
        else if (reply->number == all.storm->n_ranks)
                return true;
        else
                sleep_then_step(r);
        return false;
}

static bool last(struct rank *r, const struct store_reply *reply)
{
        struct bytes key = bytes_of(last_key);

        switch (r->step) {
        case 0:
                ask_add(r, barrier_key, 1);
                return false;
        case 1:
                ask_add(r, barrier_key, 0);
                return false;
        case 2:
                if (reply->number == all.storm->n_ranks)
                        tell(r, (struct store_request){
                                        .op = STORE_SET, .key = key, .value = { "1", 1 } });
                ask(r, (struct store_request){ .op = STORE_WAIT, .keys = &key, .n_keys = 1 });
                return false;
        default:
                return true;
        }
}

static bool count(struct rank *r, const struct store_reply *reply UNUSED)
{
        if (r->step > 0)
                return true;
        ask(r, (struct store_request){ .op = STORE_COUNT,
                                       .key = bytes_of(barrier_key),
                                       .number = all.storm->n_ranks });
        return false;
}

static void take_step(struct rank *r, const struct store_reply *reply)
{
        static bool (*const patterns[])(struct rank *,
                                        const struct store_reply *) = { nccl, poll, last, count };

        if (patterns[all.storm->pattern](r, reply))
                done(r);
        r->step++;
}

static void replied(void *ctx, const struct store_reply *reply)
{
        struct rank *r = ctx;

        if (reply->status != STORE_OK)
                wrong(r, reply);
        if (reply->tag == r->awaited)
                take_step(r, reply);
}

/* --- what an agent does ----------------------------------------------------------------------- */

static void up(void *ctx, const void *body, size_t len)
{
        struct agent *a = ctx;

        store_encode(&a->peer->out, body, len);
}

static void start(struct agent *a)
{
        if (!all.begin_cpu)
                all.begin_cpu = usage_of(getpid()).cpu_ns;
        a->peer->read = a->peer->written = a->peer->writes = 0;
        for (uint32_t i = 0; i < a->n_ranks; i++)
                take_step(&a->ranks[i], NULL);
}

static void arrived(void *ctx UNUSED, struct peer *p)
{
        struct agent *a = &all.v[p->index];
        struct error err;
        struct frame f;

        while (frame_peek(&p->in, &f, &err) > 0) {
                if (f.type == MSG_PING)
                        start(a);
                else if (relay_deliver(a->relay, f.body, f.len, &err) < 0) {
                        fprintf(stderr, "storm: %s\n", err.text);
                        _exit(1);
                }
                frame_consume(&p->in, &f);
        }
}

static void turn(void *ctx UNUSED, struct peer *p)
{
        relay_turn(all.v[p->index].relay);
}

static int next(void *ctx UNUSED)
{
        int64_t now = all.sleepers ? usage_now_ns() : 0;

        while (all.sleepers && all.sleepers->due <= now) {
                struct rank *r = all.sleepers;

                all.sleepers = r->next;
                if (!all.sleepers)
                        all.last_sleeper = &all.sleepers;
                take_step(r, NULL);
                peers_touch(&all.peers, r->agent->peer);
        }
        if (all.n_left == 0)
                return -2;
        return all.sleepers ? (int)((all.sleepers->due - now) / 1000000) + 1 : -1;
}

/* ---------------------------------------------------------------------------------------------- */

static void greet(struct peer *p)
{
        struct hello h = { .version = MSG_VERSION, .mono_ns = (uint64_t)usage_now_ns() };

        buf_append(&p->out, MSG_MAGIC, strlen(MSG_MAGIC));
        hello_encode(&p->out, &h);
        peers_touch(&all.peers, p);
}

static void make_agent(uint32_t i)
{
        static const struct relay_client_ops ops = { .reply = replied };
        struct agent *a = &all.v[i];
        uint32_t first = i * all.storm->per_node;

        a->peer = &all.peers.v[i];
        a->relay = relay_create((struct relay_ops){ .up = up }, a);
        a->n_ranks = MIN(all.storm->per_node, all.storm->n_ranks - first);
        a->ranks = xcalloc(a->n_ranks, sizeof(*a->ranks));
        for (uint32_t k = 0; k < a->n_ranks; k++) {
                a->ranks[k].agent = a;
                a->ranks[k].number = first + k;
                a->ranks[k].client = relay_client_create(a->relay, ops, &a->ranks[k]);
        }
        greet(a->peer);
}

static void make_ids(void)
{
        char key[KEY_ROOM];

        all.n_roots = (all.storm->n_ranks + RANKS_PER_ROOT - 1) / RANKS_PER_ROOT;
        all.ids = xcalloc(all.n_roots, sizeof(*all.ids));
        for (uint32_t i = 0; i < all.n_roots; i++) {
                snprintf(key, sizeof(key), "/default_pg/0//cuda//UniqueNCCLID:%u", i);
                all.ids[i] = bytes_of(xstrdup(key));
        }
}

static void note_traffic(void)
{
        struct storm_result *r = &all.storm->real;
        struct usage u = usage_of(getpid());

        r->agents_ns = u.cpu_ns - all.begin_cpu;
        r->agents_kb = u.peak_kb;
        for (uint32_t i = 0; i < all.storm->n_nodes; i++) {
                struct relay_count c = relay_counts(all.v[i].relay);
                const struct peer *p = all.v[i].peer;

                r->up += c.up;
                r->down += c.down;
                /* Without GONE, which left alone. */
                all.storm->traffic[i] =
                        (struct storm_traffic){ p->writes - 1, p->written - FRAME_HEADER, p->read };
        }
}

bool storm_agents(struct storm *s, const char *name)
{
        all.storm = s;
        all.n_left = s->n_nodes;
        all.v = xcalloc(s->n_nodes, sizeof(*all.v));
        all.peers.ops = (struct peers_ops){ .arrived = arrived, .turn = turn, .next = next };
        make_ids();
        if (!peers_connect(&all.peers, name, s->n_nodes)) {
                perror("storm: connect");
                return false;
        }
        for (uint32_t i = 0; i < s->n_nodes; i++)
                make_agent(i);
        if (!peers_run(&all.peers)) {
                fputs("storm: the head has closed a connection\n", stderr);
                return false;
        }
        note_traffic();
        return true;
}
