/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and ranks have the times of the newest events. Those before the begin of an attempt are of
 * an earlier one: a node that stays connected has no phase in the start of the next attempt. The
 * table phases[] names two moments of each phase by the offset of a member; add_phase() reads both
 * for all nodes or ranks, and keeps the last end, which is on the critical path, and the median.
 */
#include "head/record/story_start.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/record/story.h"

/* --- phases ----------------------------------------------------------------------------------- */

/* Orders durations for qsort(). */
static int compare_spans(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

/* A member of the attempt, of each node or of each rank. */
struct story_time {
        enum { OF_ATTEMPT, OF_NODE, OF_RANK } of;
        size_t at; /* of an int64_t */
};

#define ATTEMPT(member)                                                                            \
        {                                                                                          \
                OF_ATTEMPT, offsetof(struct story_start, member)                                   \
        }
#define NODE(member)                                                                               \
        {                                                                                          \
                OF_NODE, offsetof(struct story_node, member)                                       \
        }
#define RANK(member)                                                                               \
        {                                                                                          \
                OF_RANK, offsetof(struct story_rank, member)                                       \
        }

static const struct phase_times {
        const char *name;
        char letter;
        struct story_time from, to;
} phases[] = {
        { "connect", 'C', ATTEMPT(from_us), NODE(connected_us) },
        { "agent", 'A', NODE(connected_us), NODE(ready_us) },
        { "push", 'P', NODE(ready_us), NODE(pushed_us) },
        { "start", 'S', ATTEMPT(ordered_us), RANK(started_us) },
        { "join", 'J', RANK(started_us), RANK(joined_us) },
};

/* Returns a moment of node or rank @i; -1 = never. */
static int64_t read_time(const struct story *s, const struct story_time *t, size_t i)
{
        const void *of = t->of == OF_ATTEMPT ? (const void *)&s->starts.now
                         : t->of == OF_NODE  ? (const void *)&s->nodes[i]
                                             : (const void *)&s->ranks[i];
        int64_t us;

        memcpy(&us, (const char *)of + t->at, sizeof(us));
        return us;
}

/* Adds a phase of nodes or ranks; below the begin of the attempt = never. */
static void add_phase(struct story_start *a, const struct story *s, const struct phase_times *f)
{
        bool of_ranks = f->to.of == OF_RANK;
        size_t n = of_ranks ? s->n_ranks : s->n_nodes, n_spans = 0;
        struct story_phase p = { .name = f->name,
                                 .letter = f->letter,
                                 .from_us = INT64_MAX,
                                 .until_us = -1,
                                 .node = -1,
                                 .rank = -1 };
        int64_t *spans = xcalloc(n, sizeof(*spans));

        for (size_t i = 0; i < n; i++) {
                int64_t begin = read_time(s, &f->from, i), end = read_time(s, &f->to, i);

                if (begin < a->from_us || end < begin || (of_ranks && s->ranks[i].waited))
                        continue;
                spans[n_spans++] = end - begin;
                p.from_us = MIN(p.from_us, begin);
                /* The last node or rank decides when the phase is over. */
                if (end <= p.until_us)
                        continue;
                p.until_us = end;
                p.own_us = end - begin;
                p.rank = of_ranks ? (int)i : -1;
                p.node = of_ranks ? s->node_of[i] : (int)i;
        }
        /* The hold may have imported modules meanwhile. */
        if (n_spans && f->letter == 'C' && s->nodes[p.node].held)
                p.name = "hold";
        if (n_spans) {
                qsort(spans, n_spans, sizeof(*spans), compare_spans);
                p.median_us = spans[n_spans / 2];
                p.host = xstrdup(story_host(s, p.node, -1));
                a->phases[a->n_phases++] = p;
        }
        free(spans);
}

/* --- hosts of the first start ----------------------------------------------------------------- */

/* Keeps a host of the first start for the picture. */
static void append_host_row(struct story_starts *a, const struct story_node *n)
{
        a->rows = xgrow(a->rows, a->n_rows, &a->cap_rows, sizeof(*a->rows));
        a->rows[a->n_rows] = *n;
        a->rows[a->n_rows++].host = xstrdup(n->host);
}

/* By node; of one node the replaced hosts first, as they came. */
static int compare_rows(const void *a, const void *b)
{
        const struct story_node *x = a, *y = b;

        if (x->node != y->node)
                return x->node - y->node;
        if (x->replaced != y->replaced)
                return x->replaced ? -1 : 1;
        return (x->connected_us > y->connected_us) - (x->connected_us < y->connected_us);
}

/* Adds the hosts that no other has replaced. */
static void append_current_hosts(struct story *s)
{
        size_t first = s->starts.n_rows;

        for (size_t i = 0; i < s->n_nodes; i++)
                append_host_row(&s->starts, &s->nodes[i]);
        story_start_sum_ranks(s, s->starts.rows + first);
        if (s->starts.n_rows)
                qsort(s->starts.rows, s->starts.n_rows, sizeof(*s->starts.rows), compare_rows);
}

void story_start_replace_host(struct story *s, struct story_node *n, const char *host)
{
        /* Only of the first start, and only a host that was tried. */
        if (n->host && !s->starts.n && (n->connected_us >= 0 || n->failed)) {
                n->replaced = true;
                append_host_row(&s->starts, n);
        }
        free(n->host);
        *n = (struct story_node){ .host = xstrdup(host),
                                  .node = n->node,
                                  .connected_us = -1,
                                  .ready_us = -1,
                                  .pushed_us = -1,
                                  .started_us = -1,
                                  .joined_us = -1,
                                  .ended_us = -1 };
}

/* ---------------------------------------------------------------------------------------------- */

void story_start_sum_ranks(const struct story *s, struct story_node *nodes)
{
        for (size_t i = 0; i < s->n_ranks; i++) {
                const struct story_rank *r = &s->ranks[i];
                struct story_node *n = s->node_of[i] >= 0 ? &nodes[s->node_of[i]] : NULL;

                if (!n)
                        continue;
                n->n_ranks++;
                /* Ranks of a role with --after start when others are ready: no part of the start of
                 * the job. */
                if (!r->waited) {
                        n->started_us = MAX(n->started_us, r->started_us);
                        n->joined_us = MAX(n->joined_us, r->joined_us);
                }
                n->ended_us = MAX(n->ended_us, r->exited_us);
        }
}

void story_start_add(struct story *s, int64_t us)
{
        struct story_starts *all = &s->starts;
        struct story_start a = all->now;

        for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
                add_phase(&a, s, &phases[i]);
        if (!all->n)
                append_current_hosts(s);
        all->v = xgrow(all->v, all->n, &all->cap, sizeof(*all->v));
        all->v[all->n++] = a;
        all->now = (struct story_start){ .from_us = MAX(us, INT64_C(0)), .ordered_us = -1 };
}

void story_starts_finish(struct story_starts *a)
{
        for (size_t i = 0; i < a->n_rows; i++)
                free(a->rows[i].host);
        for (size_t i = 0; i < a->n; i++)
                for (size_t k = 0; k < a->v[i].n_phases; k++)
                        free(a->v[i].phases[k].host);
        free(a->rows);
        free(a->v);
}

int64_t story_start_end(const struct story_start *a)
{
        int64_t end = 1;

        for (size_t i = 0; i < a->n_phases; i++)
                end = MAX(end, a->phases[i].until_us);
        return end;
}
