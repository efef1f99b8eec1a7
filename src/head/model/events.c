/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners are called at once, in the order in which they were added, on the thread of the
 * emitter. A listener stays to the end: there is no way to leave. The names below are the "ev" of
 * events.ndjson and --json, a promise to readers.
 */
#include "head/model/events.h"

#include <assert.h>
#include <string.h>

static const char *const event_names[EVENT_KINDS] = {
        [EVENT_RUN_START] = "run.start",
        [EVENT_NODE_PHASE] = "node.phase",
        [EVENT_NODE_CONNECTED] = "node.connected",
        [EVENT_NODE_UPLOAD] = "node.upload",
        [EVENT_NODE_READY] = "node.ready",
        [EVENT_PUSH_HASHING] = "push.hashing",
        [EVENT_PUSH_START] = "push.start",
        [EVENT_PUSH_PROGRESS] = "push.progress",
        [EVENT_NODE_PUSHED] = "node.pushed",
        [EVENT_NODE_FAILED] = "node.failed",
        [EVENT_NODE_SILENT] = "node.silent",
        [EVENT_NODE_HEARD] = "node.heard",
        [EVENT_NODE_LOST] = "node.lost",
        [EVENT_RANK_STARTED] = "rank.started",
        [EVENT_RANK_JOINED] = "rank.joined",
        [EVENT_ROLE_READY] = "role.ready",
        [EVENT_ROLE_WAITS] = "role.waits",
        [EVENT_ROLE_STARTS] = "role.starts",
        [EVENT_ROLE_RESTART] = "role.restart",
        [EVENT_RANK_PROGRESS] = "rank.progress",
        [EVENT_RANK_SLOW] = "rank.slow",
        [EVENT_RANK_MISSING] = "rank.missing",
        [EVENT_STALLED] = "run.stalled",
        [EVENT_HANG] = "run.hang",
        [EVENT_LIBRARY] = "run.library",
        [EVENT_SIGNAL] = "run.signal",
        [EVENT_RESTART] = "run.restart",
        [EVENT_DECISION] = "run.decision",
        [EVENT_NODE_RETIRED] = "node.retired",
        [EVENT_NODE_DRAINED] = "node.drained",
        [EVENT_NODE_REPLACED] = "node.replaced",
        [EVENT_RUN_SHRUNK] = "run.shrunk",
        [EVENT_RANK_EXITED] = "rank.exited",
        [EVENT_RANK_REPORT] = "rank.report",
        [EVENT_STOP] = "run.stop",
        [EVENT_RUN_END] = "run.end",
};

void events_init(struct events *es)
{
        memset(es, 0, sizeof(*es));
        es->start_ns = clock_ns();
}

void events_listen(struct events *es, event_listener fn, void *ctx)
{
        /* The number of listeners is fixed when hnlaunch is built, so more is an error of the
         * program. */
        assert(es->n < EVENTS_LISTENERS);
        es->listeners[es->n].fn = fn;
        es->listeners[es->n++].ctx = ctx;
}

int64_t events_now_us(const struct events *es)
{
        return (clock_ns() - es->start_ns) / 1000;
}

void events_emit(struct events *es, struct event e)
{
        /* One time for all listeners, so that files and screen agree. */
        e.us = events_now_us(es);
        for (int i = 0; i < es->n; i++)
                es->listeners[i].fn(es->listeners[i].ctx, &e);
}

const char *event_name(enum event_kind kind)
{
        return event_names[kind];
}
