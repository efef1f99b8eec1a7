/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_fetch gets the traces of the agents in pieces; keep_piece() puts a line in front of each,
 * with the number of the piece, the node, the time of the start on the node's clock, the error
 * bound of that time and the length in bytes, and hands both to the recorder. head/record/trace_log
 * reads the file.
 */
#include "head/watch/trace_keep.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/job/job.h"
#include "head/output/run_dir.h"
#include "head/pull/trace_fetch.h"
#include "head/run/recorder.h"

struct trace_keep {
        const struct run_view *r;
        struct trace_fetch *fetch;
};

/* Notes the difference of the node's clock to the start of hnlaunch. This machine has one clock. */
static void keep_piece(void *ctx, const struct node *n, uint32_t number, const void *piece,
                       size_t len)
{
        const struct trace_keep *k = ctx;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        int64_t error_us = n->host->local ? 0 : clock_offset_error(&n->clock, clock_ns()) / 1000;
        int64_t ahead_ns = n->host->local ? 0 : n->clock.offset_ns;

        buf_printf(&b, "%u %d %lld %lld %zu\n", number, n->index,
                   (long long)((ahead_ns + k->r->events->start_ns) / 1000), (long long)error_us,
                   len);
        buf_append(&b, piece, len);
        buf_append(&b, "\n", 1);
        recorder_put(run_dir_recorder(k->r->dir), RECORD_TRACE, buf_data(&b), buf_len(&b));
}

static void *create_trace_keep(const struct run_view *r, struct job_config *c)
{
        struct trace_keep *k;

        if (!run_dir_recorder(r->dir))
                return NULL;
        k = xcalloc(1, sizeof(*k));
        k->r = r;
        c->traces = k->fetch = trace_fetch_create(r->hosts->n, keep_piece, k);
        return k;
}

static void end_trace_keep(void *self)
{
        const struct run_view *r = ((struct trace_keep *)self)->r;
        /* A failed attempt before a good one is worth its traces, too. */
        bool failed = outcome_failed(job_outcome(r->job)) || job_earlier(r->job)->n;

        if (failed || r->o->record)
                job_fetch_traces(r->job);
}

static void destroy_trace_keep(void *self)
{
        struct trace_keep *k = self;

        trace_fetch_destroy(k->fetch);
        free(k);
}

const struct watcher trace_keep_watcher = {
        .create = create_trace_keep,
        .ending = end_trace_keep,
        .destroy = destroy_trace_keep,
};
