/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes have no ranks, so no heartbeat watches them. A timer pings all, and a node that has
 * said nothing for --node-timeout is lost; a pause of this process is forgiven. Nodes that a run
 * has are watched by the run as well, through its own agents.
 */
#include "head/job/job_hold.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/hold/hold.h"
#include "head/job/cluster.h"

enum { LOOK_MS = 5000, SILENT_MS = 3 * LOOK_MS / 2 };

/* A hold that is being served. */
struct job_holding {
        struct cluster *cluster;
        const struct job_hold *how;
        struct hold *hold;
        uint32_t *slots; /* by node, of how->warm */
        uv_timer_t timer;
        int64_t looked_ns;
        size_t failed; /* when the nodes were counted last */
        bool over, told;
};

static bool is_held(const struct node *n)
{
        return n->state == NODE_READY && !n->ended;
}

static struct buf *find_out_buffer(void *ctx, size_t i)
{
        struct cluster *c = ctx;
        struct node *n = &c->nodes[i];

        if (!is_held(n))
                return NULL;
        send_queue_add(&c->send_queue, n);
        return &n->out;
}

static const char *find_host_name(void *ctx, size_t i)
{
        const struct cluster *c = ctx;

        return c->hosts->v[i].name;
}

/* Each node is heard with each look. */
static bool is_node_silent(void *ctx, size_t i)
{
        const struct cluster *c = ctx;

        return clock_ns() - c->nodes[i].heard_ns > INT64_C(1000000) * SILENT_MS;
}

static void on_hold_ended(void *ctx, const char *why)
{
        struct job_holding *s = ctx;

        log_line(LOG_INFO, "the hold ends: %s", why);
        s->over = true;
}

/* Pings the nodes, and gives silent ones up. */
static void look_at_nodes(uv_timer_t *t)
{
        struct job_holding *s = t->data;
        struct cluster *c = s->cluster;
        int64_t now = clock_ns(), pause = now - s->looked_ns - INT64_C(1000000) * LOOK_MS;
        int64_t limit = MAX(c->options->node_timeout_ms, (int64_t)3 * LOOK_MS) * 1000000;

        s->looked_ns = now;
        for (size_t i = 0; i < c->n_nodes; i++) {
                struct node *n = &c->nodes[i];

                if (!is_held(n))
                        continue;
                if (pause > INT64_C(1000000) * LOOK_MS)
                        n->heard_ns += pause;
                if (now - n->heard_ns > limit) {
                        node_break(n, LINK_TIMED_OUT, "silent for %lld s",
                                   (long long)((now - n->heard_ns) / 1000000000));
                } else {
                        ping_encode(&n->out, MSG_PING, &(struct ping){ .head_ns = (uint64_t)now });
                        send_queue_add(&c->send_queue, n);
                }
        }
}

static bool any_node_held(const struct cluster *c)
{
        for (size_t i = 0; i < c->n_nodes; i++)
                if (is_held(&c->nodes[i]) && !c->nodes[i].host->local)
                        return true;
        return false;
}

bool job_hold_goes_on(struct job_holding *s, enum job_step *ret_step)
{
        bool changed = s->failed != s->cluster->failed;

        s->failed = s->cluster->failed;
        *ret_step = s->over ? JOB_DONE : JOB_NODES_LOST;
        if (s->over || (changed && !any_node_held(s->cluster)))
                return false;
        if (s->told)
                return true;
        if (hold_is_ready(s->hold)) {
                s->told = true;
                s->how->ready(s->how->ctx);
        } else if (hold_is_useless(s->hold)) {
                *ret_step = JOB_NODES_UNFIT;
                return false;
        }
        return true;
}

struct hold *job_hold_of(struct job_holding *s)
{
        return s->hold;
}

/* Returns how many ranks a run has on each node unless its options say otherwise. */
static uint32_t *count_warm_slots(const struct cluster *c)
{
        uint32_t *slots = xcalloc(c->n_nodes, sizeof(*slots));

        for (size_t i = 0; i < c->n_nodes; i++) {
                int gpus = (int)c->nodes[i].hello.n_gpus, given = c->hosts->v[i].slots;
                int n = c->options->plan.ppn;

                if (n == PLAN_PPN_CPU)
                        n = (int)c->nodes[i].hello.cores;
                else if (n <= 0)
                        n = given > 0 && n != PLAN_PPN_GPU ? given : gpus;
                slots[i] = (uint32_t)MIN(MAX(n, 1), (int)WARM_SLOTS_MAX);
        }
        return slots;
}

struct job_holding *job_hold_begin(struct cluster *c, const struct job_hold *how, struct error *err)
{
        const struct hold_nodes nodes = { find_out_buffer, find_host_name, is_node_silent, c };
        struct job_holding *s = xcalloc(1, sizeof(*s));
        struct hold_config config = { .id = how->id,
                                      .hosts = c->hosts,
                                      .settings = how->settings,
                                      .idle_ms = how->idle_ms,
                                      .start_ns = how->start_ns,
                                      .warm = how->warm,
                                      .ended = on_hold_ended,
                                      .ctx = s };

        *s = (struct job_holding){
                .cluster = c, .how = how, .slots = count_warm_slots(c), .looked_ns = clock_ns()
        };
        config.slots = s->slots;
        config.venvs = how->venvs;
        s->hold = hold_open(c->loop, &nodes, &config, err);
        if (!s->hold) {
                free(s->slots);
                free(s);
                return NULL;
        }
        uv_timer_init(c->loop, &s->timer);
        s->timer.data = s;
        uv_timer_start(&s->timer, look_at_nodes, LOOK_MS, LOOK_MS);
        return s;
}

void job_hold_close(struct job_holding *s)
{
        uv_timer_stop(&s->timer);
        hold_close(s->hold);
}

static void on_holding_closed(uv_handle_t *h)
{
        struct job_holding *s = h->data;

        free(s->slots);
        free(s);
}

void job_hold_free(struct job_holding *s)
{
        hold_free(s->hold);
        uv_close((uv_handle_t *)&s->timer, on_holding_closed);
}
