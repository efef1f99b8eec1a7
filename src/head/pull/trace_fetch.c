/* SPDX-License-Identifier: Apache-2.0 */
#include "head/pull/trace_fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/msg.h"
#include "wire/trace/trace.h"

enum { LEAST_PIECES = 2, MOST_PIECES = 68 };

struct trace_fetch {
        void (*take)(void *ctx, const struct node *n, uint32_t number, const void *piece,
                     size_t len);
        void *ctx;
        uint32_t number, max; /* of the newest request; pieces of each node */
        uint32_t budget;      /* pieces still to be requested */
        uint32_t *left;       /* by node: outstanding pieces, and 1; 0 = none */
        size_t waiting;       /* nodes with outstanding pieces */
        bool cancelled;
};

struct trace_fetch *trace_fetch_create(size_t n_nodes,
                                       void (*take)(void *ctx, const struct node *n,
                                                    uint32_t number, const void *piece, size_t len),
                                       void *ctx)
{
        struct trace_fetch *t = xcalloc(1, sizeof(*t));

        *t = (struct trace_fetch){ .take = take, .ctx = ctx };
        t->left = xcalloc(n_nodes, sizeof(*t->left));
        return t;
}

void trace_fetch_destroy(struct trace_fetch *t)
{
        if (!t)
                return;
        free(t->left);
        free(t);
}

void trace_fetch_begin(struct trace_fetch *t, size_t n_nodes)
{
        uint32_t share;

        t->number++;
        t->cancelled = false;
        t->budget = TRACE_FETCH_BYTES / TRACE_PIECE;
        share = (uint32_t)(t->budget / MAX(n_nodes, (size_t)1));
        t->max = MIN(MAX(share, (uint32_t)LEAST_PIECES), (uint32_t)MOST_PIECES);
}

void trace_fetch_ask(struct trace_fetch *t, struct node *n)
{
        if (t->budget < t->max || t->left[n->index])
                return;
        number_encode(&n->out, MSG_RECORD, t->max);
        t->left[n->index] = t->max + 1;
        t->budget -= t->max;
        t->waiting++;
}

bool trace_fetch_waits(const struct trace_fetch *t)
{
        return t && t->waiting && !t->cancelled;
}

int trace_fetch_take(struct trace_fetch *t, const struct node *n, const struct frame *f,
                     struct error *err)
{
        uint32_t left = t ? t->left[n->index] : 0;
        struct recorded m;

        if (recorded_decode(&m, f, err) < 0)
                return -EPROTO;
        if (!left || (m.len && left == 1))
                return err_set(err, EPROTO, "message out of turn: RECORDED without a request");
        if (m.len && !t->cancelled)
                t->take(t->ctx, n, t->number, m.piece, m.len);
        t->left[n->index] -= m.len > 0;
        if (m.last)
                trace_fetch_lost(t, n);
        return 0;
}

void trace_fetch_lost(struct trace_fetch *t, const struct node *n)
{
        if (!t)
                return;
        t->waiting -= t->left[n->index] > 0;
        t->left[n->index] = 0;
}

void trace_fetch_cancel(struct trace_fetch *t)
{
        t->cancelled = true;
}
