/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "head/launch_private.h"
#include "head/pull/trace_fetch.h"
#include "head/run/recorder.h"

/* Notes how the node's clock becomes time since the start of hnlaunch. That of this machine is the
 * same. */
static void keep_piece(void *ctx, const struct node *n, uint32_t number, const void *piece,
                       size_t len)
{
        struct launch *l = ctx;
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        int64_t error_us = n->host->local ? 0 : clock_offset_error(&n->clock, clock_ns()) / 1000;
        int64_t ahead_ns = n->host->local ? 0 : n->clock.offset_ns;

        buf_printf(&b, "%u %d %lld %lld %zu\n", number, n->index,
                   (long long)((ahead_ns + l->events.start_ns) / 1000), (long long)error_us, len);
        buf_append(&b, piece, len);
        buf_append(&b, "\n", 1);
        recorder_put(run_dir_recorder(l->dir), RECORD_TRACE, buf_data(&b), buf_len(&b));
}

void launch_trace_init(struct launch *l)
{
        if (run_dir_recorder(l->dir))
                l->config.traces = trace_fetch_create(l->hosts.n, keep_piece, l);
}

void launch_trace_end(struct launch *l)
{
        bool failed = outcome_failed(job_outcome(l->job)) || job_earlier(l->job)->n;

        if (failed || l->o.record)
                job_fetch_traces(l->job);
}
