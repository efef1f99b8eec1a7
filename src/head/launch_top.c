/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While at least one client of the run's socket looks on, the nodes take a sample a second, and all
 * those clients get a line a second. The live line on a terminal looks on, too, from the first step
 * of a rank on: it names a slow rank.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "head/launch_private.h"
#include "head/output/progress.h"
#include "head/top/top_frame.h"
#include "head/top/top_state.h"
#include "wire/status_msg.h"

enum {
        TOP_MS = 1000,
        FIRST_MS = 200, /* samples of that second have come by then */
        LIVE_TICKS = 5, /* between two looks for a slow rank */
};

struct launch_top {
        struct launch *l;
        struct top_state *state;
        uv_timer_t timer;
        bool has_timer;
        bool clients, live; /* who looks on */
        unsigned ticks;
};

/* --- facts ------------------------------------------------------------------------------------ */

static const char *tell_doing(void *ctx)
{
        const struct launch *l = ctx;

        return job_doing(l->run.job);
}

static struct top_node describe_top_node(void *ctx, size_t host)
{
        static const char *const states[NODE_STATES] = {
                [NODE_NEW] = "connecting",      [NODE_CONNECTING] = "connecting",
                [NODE_GREETING] = "connecting", [NODE_READY] = "ready",
                [NODE_RUNNING] = "running",     [NODE_GONE] = "ended",
                [NODE_FAILED] = "lost",
        };
        const struct launch *l = ctx;
        const struct node *n = job_node(l->run.job, host);

        return (struct top_node){ states[n->state], n->hello.memory };
}

static bool tell_step(void *ctx, int rank, int64_t *ret_step, int64_t *ret_total)
{
        const struct launch *l = ctx;

        return job_step(l->run.job, rank, ret_step, ret_total);
}

static void on_top_sample(void *ctx, int node, struct sample *m)
{
        struct launch_top *t = ctx;

        if (t->has_timer && uv_is_active((uv_handle_t *)&t->timer))
                top_state_take(t->state, node, m);
}

/* --- clients ---------------------------------------------------------------------------------- */

static char *write_top_line(const struct launch_top *t)
{
        struct buf b = BUF_INIT;

        top_state_json(t->state, &b);
        return buf_steal(&b);
}

static void tell_live_line(const struct launch_top *t, const char *line)
{
        struct top_frame f;
        char note[128];

        if (!top_frame_read(&f, json_loads(line, 0, NULL)))
                return;
        top_frame_slow_note(&f, note, sizeof(note));
        progress_slow(t->l->run.progress, *note ? note : NULL);
        top_frame_finish(&f);
}

static void on_top_tick(uv_timer_t *timer)
{
        struct launch_top *t = timer->data;
        bool live = t->live && t->ticks++ % LIVE_TICKS == LIVE_TICKS - 1;
        CLEANUP(free_textp) char *line = t->clients || live ? write_top_line(t) : NULL;

        if (t->clients)
                run_socket_tell_top(t->l->run.socket, line);
        if (live)
                tell_live_line(t, line);
}

static void begin_top_samples(struct launch_top *t)
{
        if (!t->has_timer) {
                uv_timer_init(job_loop(t->l->run.job), &t->timer);
                uv_unref((uv_handle_t *)&t->timer);
                t->timer.data = t;
                t->has_timer = true;
        }
        if (!uv_is_active((uv_handle_t *)&t->timer)) {
                uv_timer_start(&t->timer, on_top_tick, FIRST_MS, TOP_MS);
                job_sample(t->l->run.job, TOP_MS);
        }
}

char *launch_top_look(struct launch *l)
{
        struct launch_top *t = l->listeners.top;

        t->clients = true;
        begin_top_samples(t);
        return write_top_line(t);
}

void launch_top_rest(struct launch *l)
{
        struct launch_top *t = l->listeners.top;

        t->clients = false;
        if (t->live)
                return;
        uv_timer_stop(&t->timer);
        top_state_forget(t->state);
        job_sample(l->run.job, 0);
}

/* --- the live line ---------------------------------------------------------------------------- */

static void on_top_event(void *ctx, const struct event *e)
{
        struct launch_top *t = ctx;

        if (e->kind != EVENT_RANK_PROGRESS || t->live || t->l->plan.world_size < 2 ||
            !progress_draws_live(t->l->run.progress))
                return;
        t->live = true;
        begin_top_samples(t);
}

/* --- life cycle ------------------------------------------------------------------------------- */

void launch_top_init(struct launch *l)
{
        struct top_source source = { .run_id = l->config.run_id,
                                     .events = &l->events,
                                     .ranks = &l->ranks,
                                     .hosts = &l->hosts,
                                     .doing = tell_doing,
                                     .node = describe_top_node,
                                     .step = tell_step,
                                     .ctx = l };
        struct launch_top *t;

        if (l->o.command != COMMAND_RUN)
                return;
        t = xcalloc(1, sizeof(*t));
        t->l = l;
        t->state = top_state_create(&source);
        events_listen(&l->events, on_top_event, t);
        l->config.samples = (struct job_samples){ on_top_sample, t };
        l->listeners.top = t;
}

void launch_top_close(struct launch *l)
{
        struct launch_top *t = l->listeners.top;

        if (t && t->has_timer)
                uv_close((uv_handle_t *)&t->timer, NULL);
        if (t)
                t->has_timer = false;
}

void launch_top_free(struct launch *l)
{
        if (l->listeners.top)
                top_state_destroy(l->listeners.top->state);
        free(l->listeners.top);
        l->listeners.top = NULL;
}
