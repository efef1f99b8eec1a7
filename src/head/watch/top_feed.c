/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While at least one client of the run's socket watches, the nodes take a sample a second, and all
 * watching clients get a line a second, at the same moments as the live line. The live line on a
 * terminal watches as well, from the first step of a rank on, to name a slow rank. The head counts
 * the slow ranks of these samples, and the rank that was slow most often has an event at the end.
 */
#include "head/watch/top_feed.h"

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/job/job.h"
#include "head/output/live_line.h"
#include "head/output/progress.h"
#include "head/run/run_socket.h"
#include "head/top/top_frame.h"
#include "head/top/top_state.h"
#include "wire/status_msg.h"

enum {
        TOP_MS = 1000,
        FIRST_MS = 200, /* by then the first samples have come */
        SLOW_TICKS = 5, /* between two checks for a slow rank */
};

/* Checks with this rank slow, and the sum of its costs for the others. */
struct slow_checks {
        size_t n;
        int64_t percents;
};

struct slow_total {
        struct slow_checks *v; /* by rank; NULL = none was slow */
        size_t checks;
};

struct top_feed {
        const struct run_view *r;
        struct top_state *state;
        uv_timer_t timer;
        bool has_timer;
        bool clients, live; /* watch */
        unsigned ticks;
        struct slow_total slow; /* of the attempt */
};

/* --- facts ------------------------------------------------------------------------------------ */

static const char *tell_doing(void *ctx)
{
        const struct top_feed *t = ctx;

        return job_doing(t->r->job);
}

static int64_t tell_hang(void *ctx)
{
        const struct top_feed *t = ctx;

        return job_hang_ms(t->r->job);
}

static const char *tell_hang_cause(void *ctx, int *ret_rank)
{
        const struct top_feed *t = ctx;

        return job_hang_cause(t->r->job, ret_rank);
}

static json_t *tell_waiting_roles(void *ctx)
{
        const struct top_feed *t = ctx;

        return job_describe_waits(t->r->job);
}

/* Returns the state of a host's node. A failed node is lost, and no longer silent. */
static struct top_node describe_top_node(void *ctx, size_t host)
{
        static const char *const states[NODE_STATES] = {
                [NODE_NEW] = "connecting",      [NODE_CONNECTING] = "connecting",
                [NODE_GREETING] = "connecting", [NODE_READY] = "ready",
                [NODE_RUNNING] = "running",     [NODE_GONE] = "ended",
                [NODE_FAILED] = "lost",
        };
        const struct top_feed *t = ctx;
        const struct node *n = job_node(t->r->job, host);

        return (struct top_node){ .state = states[n->state],
                                  .memory = n->hello.memory,
                                  .silent_ms = n->silent_ns && n->state != NODE_FAILED
                                                       ? (clock_ns() - n->silent_ns) / 1000000
                                                       : 0 };
}

static void on_top_sample(void *ctx, int node, struct sample *m)
{
        struct top_feed *t = ctx;

        /* Samples ordered before top_feed_rest() may still come. */
        if (t->has_timer && uv_is_active((uv_handle_t *)&t->timer))
                top_state_take(t->state, node, m);
}

/* --- clients ---------------------------------------------------------------------------------- */

/* Returns the line of now, malloc'ed. */
static char *write_top_line(const struct top_feed *t)
{
        struct buf b = BUF_INIT;

        top_state_json(t->state, uv_now(job_loop(t->r->job)), &b);
        return buf_steal(&b);
}

/* Counts the slow ranks of a check, for the event at the end. A frame without shares of time, as
 * with ranks that spin, is no check. */
static void count_slow_ranks(struct top_feed *t, const struct top_frame *f)
{
        t->slow.checks += f->knows_busy;
        for (size_t i = 0; i < f->n_hosts; i++)
                for (size_t k = 0; k < f->hosts[i].n_ranks; k++) {
                        const struct top_frame_rank *r = &f->hosts[i].ranks[k];

                        if (r->odd != ODD_SLOW)
                                continue;
                        if (!t->slow.v)
                                t->slow.v =
                                        xcalloc((size_t)t->r->plan->world_size, sizeof(*t->slow.v));
                        t->slow.v[r->rank].n++;
                        t->slow.v[r->rank].percents += f->slow.cost;
                }
}

/* Judges the ranks as `hnlaunch top` does, from the same line, so that the live line and top name
 * the same rank. */
static void check_slow_ranks(struct top_feed *t, const char *line)
{
        struct top_frame f;
        char note[128];

        if (!top_frame_read(&f, json_loads(line, 0, NULL)))
                return;
        count_slow_ranks(t, &f);
        top_frame_slow_note(&f, note, sizeof(note));
        if (t->live)
                progress_slow(t->r->progress, *note ? note : NULL);
        top_frame_finish(&f);
}

static void on_top_tick(uv_timer_t *timer)
{
        struct top_feed *t = timer->data;
        bool check = t->ticks++ % SLOW_TICKS == SLOW_TICKS - 1;
        uint64_t due_ms = live_line_due_ms(job_loop(t->r->job));
        /* The line of a large job is long, so a line is made for a reader only. */
        CLEANUP(free_textp) char *line = t->clients || check ? write_top_line(t) : NULL;

        uv_timer_start(timer, on_top_tick, due_ms, 0);
        if (t->clients)
                run_socket_tell_top(t->r->socket, line);
        if (check)
                check_slow_ranks(t, line);
}

/* Starts the timer and the samples, unless both go on for another reader. */
static void begin_top_samples(struct top_feed *t)
{
        if (!t->has_timer) {
                uv_timer_init(job_loop(t->r->job), &t->timer);
                uv_unref((uv_handle_t *)&t->timer);
                t->timer.data = t;
                t->has_timer = true;
        }
        if (!uv_is_active((uv_handle_t *)&t->timer)) {
                uv_timer_start(&t->timer, on_top_tick, FIRST_MS, 0);
                job_sample(t->r->job, TOP_MS);
        }
}

char *top_feed_watch(const struct run_view *r)
{
        struct top_feed *t = watchers_find(r->watchers, &top_feed_watcher);

        t->clients = true;
        begin_top_samples(t);
        return write_top_line(t);
}

void top_feed_rest(const struct run_view *r)
{
        struct top_feed *t = watchers_find(r->watchers, &top_feed_watcher);

        t->clients = false;
        if (t->live)
                return;
        uv_timer_stop(&t->timer);
        top_state_forget(t->state);
        job_sample(r->job, 0);
}

/* --- the records ------------------------------------------------------------------------------ */

static void forget_slow_ranks(struct top_feed *t)
{
        free(t->slow.v);
        t->slow = (struct slow_total){ 0 };
}

/* Emits the rank that has cost the others most over the attempt. Fewer than half of the checks tell
 * of chance, or of a short time. */
static void record_slow_rank(void *self)
{
        struct top_feed *t = self;
        const struct slow_checks *v = t->slow.v, *most = v;
        struct event e = { .kind = EVENT_RANK_SLOW };

        for (int i = 1; v && i < t->r->plan->world_size; i++)
                if (v[i].percents > most->percents)
                        most = &v[i];
        if (!v || 2 * most->n < t->slow.checks)
                return;
        e.rank = (int)(most - v);
        e.node = t->r->plan->ranks[e.rank].node;
        e.host = t->r->hosts->v[t->r->plan->nodes[e.node].host].name;
        e.value = most->percents / (int64_t)most->n;
        events_emit(t->r->events, e);
}

/* --- the live line ---------------------------------------------------------------------------- */

static void on_top_event(void *ctx, const struct event *e)
{
        struct top_feed *t = ctx;

        if (e->kind == EVENT_RESTART)
                forget_slow_ranks(t);
        if (e->kind != EVENT_RANK_PROGRESS || t->live || t->r->plan->world_size < 2 ||
            !progress_draws_live(t->r->progress))
                return;
        t->live = true;
        begin_top_samples(t);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void *create_top_feed(const struct run_view *r, struct job_config *c)
{
        struct top_source source = { .run_id = r->id,
                                     .events = r->events,
                                     .ranks = r->ranks,
                                     .hosts = r->hosts,
                                     .doing = tell_doing,
                                     .hang_ms = tell_hang,
                                     .hang_cause = tell_hang_cause,
                                     .waits = tell_waiting_roles,
                                     .node = describe_top_node };
        struct top_feed *t;

        if (r->o->command != COMMAND_RUN)
                return NULL;
        t = xcalloc(1, sizeof(*t));
        t->r = r;
        source.ctx = t;
        t->state = top_state_create(&source);
        events_listen(r->events, on_top_event, t);
        c->samples = (struct job_samples){ on_top_sample, t };
        return t;
}

static void close_top_feed(void *self)
{
        struct top_feed *t = self;

        if (t->has_timer)
                uv_close((uv_handle_t *)&t->timer, NULL);
        t->has_timer = false;
}

static void destroy_top_feed(void *self)
{
        struct top_feed *t = self;

        top_state_destroy(t->state);
        free(t->slow.v);
        free(t);
}

const struct watcher top_feed_watcher = {
        .create = create_top_feed,
        .ending = record_slow_rank,
        .close = close_top_feed,
        .destroy = destroy_top_feed,
};
