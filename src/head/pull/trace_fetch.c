/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request has a number, which the records keep beside each piece (head/record/trace_log.h): of
 * every node the newest request counts. left[] has for each node how many pieces may still come,
 * and 1, so that a node with the last piece outstanding differs from one without a request.
 */
#include "head/pull/trace_fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/msg.h"
#include "wire/trace/trace.h"

/* Of a node: two still tell the last moments; an agent keeps no more than NODE_TRACE_PIECES. */
enum { LEAST_PIECES = 2, MOST_PIECES = 68 };

/* What a node still has to send. A cancelled request goes on there: the next one is sent when its
 * answer has ended. */
struct owed {
        uint32_t left;   /* outstanding pieces, and 1; 0 = none */
        uint32_t number; /* of the request */
        bool again;      /* another request waits for the end of this one */
};

struct trace_fetch {
        void (*take)(void *ctx, const struct node *n, uint32_t number, const void *piece,
                     size_t len);
        void *ctx;
        uint32_t number, max; /* of the newest request; pieces of each node */
        uint32_t budget;      /* pieces still to be requested */
        struct owed *nodes;   /* by node */
        size_t waiting;       /* nodes that answer, or will be asked when they have answered */
        bool cancelled;
};

struct trace_fetch *trace_fetch_create(size_t n_nodes,
                                       void (*take)(void *ctx, const struct node *n,
                                                    uint32_t number, const void *piece, size_t len),
                                       void *ctx)
{
        struct trace_fetch *t = xcalloc(1, sizeof(*t));

        *t = (struct trace_fetch){ .take = take, .ctx = ctx };
        t->nodes = xcalloc(n_nodes, sizeof(*t->nodes));
        return t;
}

void trace_fetch_destroy(struct trace_fetch *t)
{
        if (!t)
                return;
        free(t->nodes);
        free(t);
}

void trace_fetch_begin(struct trace_fetch *t, size_t n_nodes)
{
        uint32_t share;

        t->number++;
        t->cancelled = false;
        t->budget = TRACE_FETCH_BYTES / TRACE_PIECE;
        /* An equal share, but no less than makes a trace readable and no more than an agent
         * keeps. */
        share = (uint32_t)(t->budget / MAX(n_nodes, (size_t)1));
        t->max = MIN(MAX(share, (uint32_t)LEAST_PIECES), (uint32_t)MOST_PIECES);
}

static void request_trace(struct trace_fetch *t, struct node *n)
{
        number_encode(&n->out, MSG_RECORD, t->max);
        t->nodes[n->index] = (struct owed){ .left = t->max + 1, .number = t->number };
}

void trace_fetch_ask(struct trace_fetch *t, struct node *n)
{
        struct owed *w = &t->nodes[n->index];

        if (t->budget < t->max || (w->left && (w->number == t->number || w->again)))
                return;
        t->budget -= t->max;
        if (w->left) {
                w->again = true;
                return;
        }
        request_trace(t, n);
        t->waiting++;
}

bool trace_fetch_waits(const struct trace_fetch *t)
{
        return t && t->waiting && !t->cancelled;
}

int trace_fetch_take(struct trace_fetch *t, struct node *n, const struct frame *f,
                     struct error *err)
{
        struct owed *w = t ? &t->nodes[n->index] : NULL;
        struct recorded m;

        if (recorded_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!w || !w->left || (m.len && w->left == 1))
                return err_set(err, EPROTO, "message out of turn: RECORDED without a request");
        if (m.len && !t->cancelled && w->number == t->number)
                t->take(t->ctx, n, t->number, m.piece, m.len);
        w->left -= m.len > 0;
        if (m.last && w->again && !t->cancelled)
                request_trace(t, n);
        else if (m.last)
                trace_fetch_lost(t, n);
        return 0;
}

void trace_fetch_lost(struct trace_fetch *t, const struct node *n)
{
        if (!t)
                return;
        t->waiting -= t->nodes[n->index].left > 0;
        t->nodes[n->index] = (struct owed){ 0 };
}

void trace_fetch_cancel(struct trace_fetch *t)
{
        t->cancelled = true;
}
