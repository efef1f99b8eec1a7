/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of ranks goes to step_lines, which matches lines against the expression of --progress-re;
 * a step goes to the job like one of hn_progress(). Each attempt has new lines: ranks may have
 * other numbers, and unfinished lines of the last attempt end nowhere.
 */
#include "head/watch/step_feed.h"

#include <stdlib.h>

#include "base/memory.h"
#include "head/job/job.h"
#include "head/model/step_lines.h"

struct step_feed {
        const struct run_view *r;
        struct step_lines *lines; /* of the attempt; NULL before its first rank */
        bool again;               /* another attempt begins with the next rank */
};

static void on_line_step(void *ctx, int rank, int64_t step, int64_t total)
{
        struct step_feed *f = ctx;

        job_line_step(f->r->job, rank, step, total);
}

static void on_step_feed_event(void *ctx, const struct event *e)
{
        struct step_feed *f = ctx;

        if (e->kind == EVENT_RUN_START || e->kind == EVENT_RESTART)
                f->again = true;
        /* Not at the restart itself: the plan may still change the number of ranks. */
        if (e->kind != EVENT_RANK_STARTED || !f->again)
                return;
        step_lines_destroy(f->lines);
        f->lines = step_lines_create(f->r->o->progress_re, f->r->plan->world_size, on_line_step, f);
        f->again = false;
}

bool step_feed_missed(const struct run_view *r)
{
        const struct step_feed *f = watchers_find(r->watchers, &step_feed_watcher);

        return f && step_lines_missed(f->lines);
}

static void *create_step_feed(const struct run_view *r, struct job_config *c UNUSED)
{
        struct step_feed *f;

        if (!r->o->progress_re)
                return NULL;
        f = xcalloc(1, sizeof(*f));
        f->r = r;
        events_listen(r->events, on_step_feed_event, f);
        return f;
}

static void put_step_output(void *self, int rank, uint8_t stream, const void *data, size_t len)
{
        struct step_feed *f = self;

        step_lines_put(f->lines, rank, stream, data, len);
}

static void destroy_step_feed(void *self)
{
        struct step_feed *f = self;

        step_lines_destroy(f->lines);
        free(f);
}

const struct watcher step_feed_watcher = {
        .create = create_step_feed,
        .output = put_step_output,
        .destroy = destroy_step_feed,
};
