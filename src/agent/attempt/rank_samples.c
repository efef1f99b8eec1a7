/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One timer serves the head and the trace of the node; each has an interval of its own. Looks
 * (wait_looks.h) come more often and only while the head wants samples: looks measure which part of
 * a sample's time a rank did not wait.
 */
#include "agent/attempt/rank_samples.h"

#include <stdint.h>
#include <stdlib.h>

#include "agent/attempt/node_attempt.h"
#include "agent/core/uplink.h"
#include "agent/endpoint/world_stores.h"
#include "agent/inspect/gpu_sampler.h"
#include "agent/inspect/sampler.h"
#include "agent/inspect/wait_looks.h"
#include "agent/rank/worker.h"
#include "agent/record/node_trace.h"
#include "base/memory.h"
#include "store/relay/relay.h"

enum {
        RECORD_AFTER_MS = 10000,
        RECORD_MS = 1000,
        INTERVAL_MIN_MS = 100,
        LOOK_MS = 50,     /* between two looks at the ranks */
        LOOK_RANK_MS = 2, /* ... and for each rank at least: 500 ranks in a second */
};

/* The looks at a rank since the last sample. */
struct rank_looks {
        uint32_t rank;
        struct wait_count count;
};

struct rank_samples {
        struct uplink *up;
        const struct node_attempt *attempt;
        struct world_stores *stores;
        uv_timer_t timer;
        uv_timer_t look;          /* runs while the head wants samples */
        struct rank_looks *looks; /* by place in the attempt's workers, as of begin_looks() */
        size_t n_looks;
        struct sampler sampler;
        struct gpu_sampler gpus;
        uint32_t ordered_ms; /* between two samples for the head; 0 = no samples */
        struct node_trace *trace;
        bool begun;           /* ranks of the attempt were started */
        uint64_t recorded_ms; /* of the loop: when the trace is to get the next sample */
};

/* --- waits in the store ----------------------------------------------------------------------- */

struct sample_waits {
        struct sample *m;
        uint64_t now_ns;
};

static uint64_t get_tenths(uint64_t since_ns, uint64_t now_ns)
{
        return (now_ns - MIN(since_ns, now_ns)) / 100000000;
}

/* Adds the oldest request of a client; of a rank with several connections, the oldest of all. */
static void add_sample_wait(void *ctx, const struct relay_client *c, uint32_t rank)
{
        struct sample_waits *w = ctx;
        struct relay_pending p;
        uint64_t tenths;

        if (!relay_client_pending(c, &p))
                return;
        tenths = get_tenths(p.since_ns, w->now_ns);
        for (uint32_t i = 0; i < w->m->n_ranks; i++) {
                struct sample_rank *k = &w->m->ranks[i];

                if (k->rank == rank && (!k->wait_op || tenths > k->wait_ds)) {
                        k->wait_op = p.op;
                        k->wait_ds = tenths;
                }
        }
}

/* --- looks ------------------------------------------------------------------------------------ */

static pid_t get_rank_pid(const struct worker *w)
{
        return w->started && !w->reaped ? w->pid : 0;
}

struct store_waits {
        struct node_ranks ranks;
        bool *waits; /* by place in @ranks */
};

static void note_store_wait(void *ctx, const struct relay_client *c, uint32_t rank)
{
        const struct store_waits *s = ctx;
        struct relay_pending p;

        if (!relay_client_pending(c, &p))
                return;
        for (size_t i = 0; i < s->ranks.n; i++)
                s->waits[i] |= s->ranks.v[i]->rank == rank;
}

/* Returns the looks at the rank at place @i. NULL: none, for ranks leave their places when others
 * start again. */
static struct wait_count *find_looks(struct rank_samples *s, size_t i, uint32_t rank)
{
        return i < s->n_looks && s->looks[i].rank == rank ? &s->looks[i].count : NULL;
}

/* Counts whether each rank waits right now: for the store, or in the kernel, by the state of its
 * busiest process. */
static void on_look_due(uv_timer_t *timer)
{
        struct rank_samples *s = timer->data;
        const struct node_ranks ranks = node_attempt_ranks(s->attempt);
        struct store_waits waits = { ranks, xcalloc(ranks.n, sizeof(bool)) };

        world_stores_each_local(s->stores, note_store_wait, &waits);
        for (size_t i = 0; i < ranks.n; i++) {
                struct wait_count *count = find_looks(s, i, ranks.v[i]->rank);
                pid_t pid = get_rank_pid(ranks.v[i]);

                if (count)
                        wait_looks_count(count, pid ? sampler_busiest(&s->sampler, pid) : 0,
                                         waits.waits[i]);
        }
        free(waits.waits);
}

static void stop_looks(struct rank_samples *s)
{
        uv_timer_stop(&s->look);
        free(s->looks);
        s->looks = NULL;
        s->n_looks = 0;
}

/* Makes a place for each rank of the attempt, with the looks so far. The pause grows with the
 * number of ranks, to keep the cost at a small part of a core. */
static void begin_looks(struct rank_samples *s)
{
        const struct node_ranks ranks = node_attempt_ranks(s->attempt);
        uint64_t ms = MAX(LOOK_RANK_MS * ranks.n, (uint64_t)LOOK_MS);
        struct rank_looks *looks = xcalloc(ranks.n, sizeof(*looks));

        for (size_t i = 0; i < ranks.n; i++) {
                looks[i].rank = ranks.v[i]->rank;
                for (size_t k = 0; k < s->n_looks; k++)
                        if (s->looks[k].rank == looks[i].rank)
                                looks[i].count = s->looks[k].count;
        }
        free(s->looks);
        s->looks = looks;
        s->n_looks = ranks.n;
        uv_timer_start(&s->look, on_look_due, ms, ms);
}

/* --- a sample --------------------------------------------------------------------------------- */

static void take_sample(struct rank_samples *s, struct sample *m)
{
        const struct node_ranks ranks = node_attempt_ranks(s->attempt);
        pid_t *pids = xcalloc(ranks.n, sizeof(*pids));
        struct sample_waits waits = { m, uv_hrtime() };

        *m = (struct sample){ .ranks = xcalloc(ranks.n, sizeof(*m->ranks)),
                              .n_ranks = (uint32_t)ranks.n };
        for (size_t i = 0; i < ranks.n; i++) {
                const struct worker *w = ranks.v[i];
                struct wait_count *count = find_looks(s, i, w->rank);
                uint64_t heard_ns = worker_heard_ns(w);

                pids[i] = get_rank_pid(w);
                m->ranks[i].rank = w->rank;
                m->ranks[i].busy = count ? wait_looks_take(count) : SAMPLE_USE_UNKNOWN;
                /* 0 stands for a rank without any output. */
                m->ranks[i].quiet_ds = heard_ns ? get_tenths(heard_ns, waits.now_ns) + 1 : 0;
        }
        sampler_take(&s->sampler, pids, ranks.n, m);
        if (node_attempt_has_gpus(s->attempt))
                gpu_sampler_take(&s->gpus, m);
        world_stores_each_local(s->stores, add_sample_wait, &waits);
        free(pids);
}

/* --- when ------------------------------------------------------------------------------------- */

/* The timer of the head's order may be faster or slower than the trace's. */
static void on_sample_due(uv_timer_t *timer)
{
        struct rank_samples *s = timer->data;
        uint64_t now_ms = uv_now(timer->loop);
        struct sample m;

        take_sample(s, &m);
        /* A head that does not read gets fewer samples, not old ones. */
        if (s->ordered_ms && !uplink_full(s->up))
                sample_encode(&s->up->out, &m);
        if (now_ms >= s->recorded_ms) {
                node_trace_sample(s->trace, &m);
                /* A tenth less, so that a timer of RECORD_MS that comes a bit early is not
                 * skipped. */
                s->recorded_ms = now_ms + RECORD_MS - RECORD_MS / 10;
        }
        sample_finish(&m);
}

/* Starts the timer for the samples wanted by now. */
static void schedule_samples(struct rank_samples *s)
{
        uint64_t now_ms = uv_now(s->timer.loop);

        if (node_attempt_is_idle(s->attempt) || !s->ordered_ms)
                stop_looks(s);
        else
                begin_looks(s);
        if (node_attempt_is_idle(s->attempt))
                uv_timer_stop(&s->timer);
        else if (s->ordered_ms)
                /* The first sample comes at once: rates need a sample before. */
                uv_timer_start(&s->timer, on_sample_due, 0,
                               MIN(s->ordered_ms, (uint32_t)RECORD_MS));
        else
                uv_timer_start(&s->timer, on_sample_due,
                               s->recorded_ms - MIN(now_ms, s->recorded_ms), RECORD_MS);
}

void rank_samples_begin(struct rank_samples *s)
{
        /* Further worlds, and ranks that start again, belong to the attempt. */
        if (!s->begun) {
                gpu_sampler_begin(&s->gpus);
                /* A short run pays for no samples in its trace. */
                s->recorded_ms = uv_now(s->timer.loop) + RECORD_AFTER_MS;
        }
        s->begun = true;
        schedule_samples(s);
}

void rank_samples_end(struct rank_samples *s)
{
        s->begun = false;
        uv_timer_stop(&s->timer);
        stop_looks(s);
        sampler_reset(&s->sampler);
        gpu_sampler_stop(&s->gpus);
}

void rank_samples_on_order(void *samples, const struct frame *f)
{
        struct rank_samples *s = samples;
        uint32_t ms;

        if (number_decode(&ms, f, NULL) < 0)
                return;
        s->ordered_ms = ms ? MAX(ms, (uint32_t)INTERVAL_MIN_MS) : 0;
        schedule_samples(s);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct rank_samples *rank_samples_create(uv_loop_t *loop, struct uplink *up,
                                         const struct node_attempt *attempt,
                                         struct world_stores *stores, struct node_trace *trace)
{
        struct rank_samples *s = xcalloc(1, sizeof(*s));

        *s = (struct rank_samples){ .up = up,
                                    .attempt = attempt,
                                    .stores = stores,
                                    .trace = trace,
                                    .gpus = GPU_SAMPLER_INIT };
        uv_timer_init(loop, &s->timer);
        s->timer.data = s;
        uv_timer_init(loop, &s->look);
        s->look.data = s;
        return s;
}

const struct gpu_record *rank_samples_first_gpus(const struct rank_samples *s)
{
        return s->gpus.first.mark ? &s->gpus.first : NULL;
}

bool rank_samples_have(const struct rank_samples *s, pid_t pid)
{
        return pid == s->gpus.pid;
}

void rank_samples_reaped(struct rank_samples *s, pid_t pid, int status)
{
        gpu_sampler_reaped(&s->gpus, pid, status);
}

void rank_samples_close(struct rank_samples *s)
{
        stop_looks(s);
        sampler_reset(&s->sampler);
        gpu_sampler_stop(&s->gpus);
        uv_close((uv_handle_t *)&s->look, NULL);
        uv_close((uv_handle_t *)&s->timer, NULL);
}

void rank_samples_destroy(struct rank_samples *s)
{
        free(s);
}
