/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line is written without a tree of JSON values: for ten thousand hosts the line has megabytes,
 * each second. A sample is kept as received, and its entries are found by rank: t->sampled[] points
 * into t->nodes[], so a sample is replaced only by forget_sample() and all arrays are made anew
 * when the plan changes (make_top_ranks()). Lives and steps of ranks are those of the rank board;
 * only busy shares, whose mean over ten samples top shows, are kept here.
 */
#include "head/top/top_state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/model/step_pace.h"
#include "wire/status_msg.h"
#include "wire/store_msg.h"

enum { BUSY_SAMPLES = 10, BUSY_LEAST = 3 }; /* a sample comes each second */

/* The last samples with looks at a rank, in a ring. */
struct top_busy {
        uint8_t percent[BUSY_SAMPLES];
        bool guessed[BUSY_SAMPLES];
        size_t n; /* samples so far */
};

struct top_state_node {
        int64_t taken_us; /* when the sample came; below 0 = there is none */
        struct sample sample;
};

struct top_state {
        struct top_source s;
        struct rank_board *ranks;
        struct top_busy *busy; /* by rank */
        struct top_state_node *nodes;
        const struct sample_rank **sampled; /* by rank; NULL = not sampled */
        int *replicas;                      /* by world, plan_find_replica() */
        int n_ranks;
        size_t n_nodes;
};

/* --- what happens ----------------------------------------------------------------------------- */

void top_state_forget(struct top_state *t)
{
        for (size_t i = 0; i < t->n_nodes; i++) {
                sample_finish(&t->nodes[i].sample);
                t->nodes[i] = (struct top_state_node){ .taken_us = -1 };
        }
        for (int r = 0; r < t->n_ranks; r++) {
                t->sampled[r] = NULL;
                t->busy[r].n = 0;
        }
}

/* Frees all arrays; before the first plan there are none, and the loops of top_state_forget() do
 * nothing. */
static void drop_top_ranks(struct top_state *t)
{
        top_state_forget(t);
        free(t->busy);
        free(t->nodes);
        free(t->sampled);
        free(t->replicas);
}

/* Makes the arrays for the plan of the rank board, which has heard of the event before. */
static void make_top_ranks(struct top_state *t)
{
        drop_top_ranks(t);
        t->n_ranks = t->ranks->plan->world_size;
        t->n_nodes = t->ranks->plan->n_nodes;
        t->busy = xcalloc((size_t)t->n_ranks, sizeof(*t->busy));
        t->nodes = xcalloc(t->n_nodes, sizeof(*t->nodes));
        t->sampled = xcalloc((size_t)t->n_ranks, sizeof(const struct sample_rank *));
        t->replicas = xcalloc(t->ranks->plan->n_worlds, sizeof(*t->replicas));
        for (size_t i = 0; i < t->ranks->plan->n_worlds; i++)
                t->replicas[i] = plan_find_replica(t->ranks->plan, i);
        top_state_forget(t);
}

/* Drops the sample of a node, and the pointers of its ranks into the sample. */
static void forget_sample(struct top_state *t, struct top_state_node *n)
{
        for (uint32_t i = 0; i < n->sample.n_ranks; i++)
                t->sampled[n->sample.ranks[i].rank] = NULL;
        sample_finish(&n->sample);
        *n = (struct top_state_node){ .taken_us = -1 };
}

static void on_top_event(void *ctx, const struct event *e)
{
        struct top_state *t = ctx;

        if (e->kind == EVENT_RUN_START || e->kind == EVENT_RUN_SHRUNK)
                make_top_ranks(t);
        else if (e->kind == EVENT_RESTART)
                top_state_forget(t);
        else if (e->kind == EVENT_NODE_LOST && (size_t)e->node < t->n_nodes)
                forget_sample(t, &t->nodes[e->node]); /* the sample is outdated */
        else if (e->kind == EVENT_RANK_EXITED && e->rank >= 0 && e->rank < t->n_ranks)
                t->busy[e->rank].n = 0;
}

/* Adds the share of a sample to the ring, which overwrites the oldest. */
static void note_busy(struct top_busy *b, const struct sample_rank *k)
{
        uint8_t percent = k->busy & ~SAMPLE_GUESSED;

        if (percent > 100) /* there were no looks */
                return;
        b->percent[b->n % BUSY_SAMPLES] = percent;
        b->guessed[b->n % BUSY_SAMPLES] = k->busy & SAMPLE_GUESSED;
        b->n++;
}

void top_state_take(struct top_state *t, int node, struct sample *m)
{
        struct top_state_node *n = (size_t)node < t->n_nodes ? &t->nodes[node] : NULL;

        if (!n)
                return;
        forget_sample(t, n);
        *n = (struct top_state_node){ events_now_us(t->s.events), *m };
        /* The arrays belong to @t now. */
        *m = (struct sample){ 0 };
        for (uint32_t i = 0; i < n->sample.n_ranks; i++) {
                const struct sample_rank *k = &n->sample.ranks[i];

                t->sampled[k->rank] = k;
                note_busy(&t->busy[k->rank], k);
        }
}

/* --- the line --------------------------------------------------------------------------------- */

/* A number of an agent, which may be anything: the limit keeps products and sums below within 64
 * bits. */
static int64_t bound_number(uint64_t n)
{
        return (int64_t)MIN(n, UINT64_C(1) << 40);
}

/* Appends a member; the comma comes first, so that each object begins with a member of its own. */
static void add_json_number(struct buf *b, const char *name, int64_t value)
{
        buf_printf(b, ",\"%s\":%" PRId64, name, value);
}

/* Appends a text, escaped. */
static void add_json_word(struct buf *b, const char *name, const char *text)
{
        json_t *j = json_text(text);
        CLEANUP(free_textp) char *quoted = json_dump_plain(j, JSON_ENCODE_ANY);

        json_decref(j);
        buf_printf(b, ",\"%s\":%s", name, quoted);
}

/* Names the wait of an open request. */
static const char *name_wait(uint8_t op)
{
        switch (op) {
        case STORE_BARRIER:
                return "barrier";
        case STORE_GATHER:
                return "all_gather";
        case STORE_BROADCAST:
                return "broadcast";
        case STORE_WAIT:
        case STORE_GET:
                return "key";
        default:
                return "store";
        }
}

/* Appends the numbers of a sampled rank. @rates: the sample has a predecessor, without which no
 * rate is known. @age_ms: of the sample; times since an event have grown by so much meanwhile. */
static void add_sampled_rank(struct buf *b, const struct sample_rank *k, bool rates, int64_t age_ms)
{
        /* Any other byte would break the JSON. */
        if ((k->state | 0x20) >= 'a' && (k->state | 0x20) <= 'z')
                buf_printf(b, ",\"state\":\"%c\"", k->state);
        if (rates)
                add_json_number(b, "cpu_percent", bound_number(k->cpu_percent));
        add_json_number(b, "memory_mib", bound_number(k->memory_mib));
        if (k->quiet_ds)
                add_json_number(b, "quiet_ms", bound_number(k->quiet_ds - 1) * 100 + age_ms);
        if (k->wait_op) {
                buf_printf(b, ",\"wait\":\"%s\"", name_wait(k->wait_op));
                add_json_number(b, "wait_ms", bound_number(k->wait_ds) * 100 + age_ms);
        }
}

/* Appends the mean of the last samples; a single second is too short to judge a rank by. One
 * guessed sample makes the mean guessed. */
static void add_busy(struct buf *b, const struct top_busy *busy)
{
        size_t n = MIN(busy->n, (size_t)BUSY_SAMPLES);
        int64_t sum = 0;
        bool guessed = false;

        for (size_t i = 0; i < n; i++) {
                sum += busy->percent[i];
                guessed |= busy->guessed[i];
        }
        if (n < BUSY_LEAST)
                return;
        add_json_number(b, "busy_percent", sum / (int64_t)n);
        buf_printf(b, ",\"busy_by\":\"%s\"", guessed ? "looks" : "store");
}

/* Appends a rank. A rank that does not live has neither lag nor sample: its last numbers would look
 * like the present. */
static void add_top_rank(const struct top_state *t, struct buf *b, int rank,
                         const struct rank_board_steps *steps, const struct top_state_node *n,
                         int64_t age_ms)
{
        /* By enum rank_life; words of the JSON, a promise. */
        static const char *const lives[] = { "not started", "alive", "ended", "silent" };
        const struct rank_board_row *r = &t->ranks->rows[rank];

        buf_printf(b, "{\"rank\":%d,\"life\":\"%s\"", rank, lives[r->life]);
        if (t->ranks->plan->ranks[rank].role) {
                const struct plan_rank *k = &t->ranks->plan->ranks[rank];

                add_json_word(b, "role", k->role);
                add_json_number(b, "role_rank", rank - t->ranks->plan->worlds[k->world].first);
                if (t->replicas[k->world] >= 0)
                        add_json_number(b, "replica", t->replicas[k->world]);
        }
        if (r->life == RANK_ENDED)
                add_json_number(b, "exit", r->exit);
        if (r->step >= 0) {
                add_json_number(b, "step", r->step);
                if (r->life == RANK_ALIVE && rank_board_counts_steps(t->ranks, rank))
                        add_json_number(b, "lag", steps->most - r->step);
        }
        if (r->life == RANK_ALIVE && t->sampled[rank] && t->sampled[rank]->state) {
                add_sampled_rank(b, t->sampled[rank], n->sample.interval_ms != 0, age_ms);
                add_busy(b, &t->busy[rank]);
        }
        buf_appends(b, "}");
}

/* Numbers that the driver does not report are left out. */
static void add_sampled_gpu(struct buf *b, const struct sample_gpu *g)
{
        buf_printf(b, "{\"memory_mib\":%" PRId64, bound_number(g->memory_mib));
        if (g->use_percent != SAMPLE_USE_UNKNOWN)
                add_json_number(b, "use_percent", bound_number(g->use_percent));
        if (g->memory_total_gib)
                add_json_number(b, "memory_total_mib", bound_number(g->memory_total_gib) << 10);
        if (g->celsius)
                add_json_number(b, "celsius", bound_number(g->celsius));
        if (g->watts)
                add_json_number(b, "watts", bound_number(g->watts));
        buf_appends(b, "}");
}

/* Appends the numbers of a node. The first sample has no interval and so no rates. */
static void add_node_sample(struct buf *b, const struct sample *m, int64_t age_ms)
{
        add_json_number(b, "age_ms", age_ms);
        if (m->interval_ms) {
                buf_printf(b, ",\"cpu_percent\":%" PRIu64 ".%d", m->cpu_permille / 10,
                           (int)(m->cpu_permille % 10));
                add_json_number(b, "in_kib", bound_number(m->in_kib));
                add_json_number(b, "out_kib", bound_number(m->out_kib));
        }
        add_json_number(b, "memory_mib", bound_number(m->memory_mib));
        buf_appends(b, ",\"gpus\":[");
        for (uint32_t i = 0; i < m->n_gpus; i++) {
                buf_appends(b, i ? "," : "");
                add_sampled_gpu(b, &m->gpus[i]);
        }
        buf_appends(b, "]");
}

/* Appends a node with its ranks. Without a sample, such as in the first second, the node has only
 * what the head knows. */
static void add_top_node(const struct top_state *t, struct buf *b, size_t node,
                         const struct rank_board_steps *steps)
{
        const struct plan_node *p = &t->ranks->plan->nodes[node];
        const struct top_state_node *n = &t->nodes[node];
        struct top_node facts = t->s.node(t->s.ctx, p->host);
        int64_t age_ms = (events_now_us(t->s.events) - n->taken_us) / 1000;

        buf_printf(b, "{\"node\":%d", p->node_rank);
        add_json_word(b, "host", t->s.hosts->v[p->host].name);
        buf_printf(b, ",\"state\":\"%s\"", facts.state);
        if (facts.silent_ms)
                add_json_number(b, "silent_ms", facts.silent_ms);
        if (facts.memory)
                add_json_number(b, "memory_total_mib", (int64_t)(facts.memory >> 20));
        if (n->taken_us >= 0)
                add_node_sample(b, &n->sample, age_ms);
        buf_appends(b, ",\"ranks\":[");
        for (int i = 0; i < p->n_ranks; i++) {
                buf_appends(b, i ? "," : "");
                add_top_rank(t, b, p->ranks.v[i], steps, n, age_ms);
        }
        buf_appends(b, "]}");
}

/* The cause of a hang, as `why` and HN811 have told it. */
static void add_hang(const struct top_state *t, struct buf *to)
{
        int rank;
        const char *text = t->s.hang_cause(t->s.ctx, &rank);

        if (!text)
                return;
        buf_printf(to, rank < 0 ? ",\"hang\":{\"rank\":null" : ",\"hang\":{\"rank\":%d", rank);
        add_json_word(to, "text", text);
        buf_appends(to, "}");
}

/* Appends the time since the last step; nothing before the first step. */
static void add_pace(struct buf *to, const struct step_pace *p, int64_t now_us)
{
        if (!p->had_us)
                return;
        add_json_number(to, "since_step_ms", (now_us - p->had_us) / 1000);
        add_json_number(to, "step_ms", (step_pace_step_us(p) + 999) / 1000);
}

void top_state_json(const struct top_state *t, uint64_t loop_ms, struct buf *to)
{
        const struct rank_board_steps steps = rank_board_steps(t->ranks);
        double rate = rank_board_rate(t->ranks, loop_ms);
        int64_t now_us = events_now_us(t->s.events);
        int64_t hang_ms = t->s.hang_ms(t->s.ctx);
        int64_t stalled_ms = step_pace_stalled_ms(t->ranks->pace, now_us, hang_ms);
        /* Small, unlike hosts: a tree of JSON is fine. */
        json_t *waits = t->s.waits(t->s.ctx);
        int shown = 0;

        if (hang_ms && t->ranks->plan->n_worlds > 1)
                stalled_ms = hang_ms; /* another world may make steps */

        /* The version of the format: members may come, none change their meaning. */
        buf_appends(to, "{\"v\":1");
        add_json_word(to, "run", t->s.run_id);
        add_json_word(to, "state", t->s.doing(t->s.ctx));
        add_json_number(to, "us", now_us);
        add_json_number(to, "attempt", t->ranks->attempt);
        /* Before the first event of a plan the arrays are empty, and so is the list of hosts. */
        add_json_number(to, "num_nodes", t->n_nodes ? t->ranks->plan->num_nodes : 0);
        add_json_number(to, "world_size", t->n_ranks);
        add_json_number(to, "alive", t->ranks->alive);
        if (steps.told) {
                if (steps.role)
                        add_json_word(to, "step_role", steps.role);
                add_json_number(to, "step", steps.least);
                add_json_number(to, "spread", steps.most - steps.least);
                if (steps.total)
                        add_json_number(to, "total", steps.total);
                if (rate > 0)
                        buf_printf(to, ",\"steps_per_s\":%.6g", rate);
                add_pace(to, t->ranks->pace, now_us);
        }
        if (stalled_ms)
                add_json_number(to, "stalled_ms", stalled_ms);
        add_hang(t, to);
        if (waits) {
                CLEANUP(free_textp) char *text = json_dump_plain(waits, 0);

                buf_printf(to, ",\"waits\":%s", text);
                json_decref(waits);
        }
        buf_appends(to, ",\"hosts\":[");
        for (size_t i = 0; i < t->n_nodes; i++)
                /* Spare and unused nodes have no row. */
                if (t->ranks->plan->nodes[i].n_ranks) {
                        buf_appends(to, shown++ ? "," : "");
                        add_top_node(t, to, i, &steps);
                }
        buf_appends(to, "]}\n");
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct top_state *top_state_create(const struct top_source *s)
{
        struct top_state *t = xcalloc(1, sizeof(*t));

        t->s = *s;
        t->ranks = s->ranks;
        events_listen(s->events, on_top_event, t);
        return t;
}

void top_state_destroy(struct top_state *t)
{
        if (t)
                drop_top_ranks(t);
        free(t);
}
