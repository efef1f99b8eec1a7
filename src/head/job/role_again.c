/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each span of ranks that ends or waits has an entry in the list; the timer is set for the first
 * that is due. An entry of ranks that end is dropped when these have ended; ranks that must not
 * begin any more keep theirs to the end of the attempt.
 */
#include "head/job/role_again.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/job/cluster.h"

enum {
        HEALTHY_MS = 60000, /* ranks that ran for longer start again at once */
        BACKOFF_MS = 1000,  /* before the second restart in a row; then doubled */
        BACKOFF_MAX_MS = 60000,
};

struct again_span {
        struct role_span ranks;
        int role;       /* to be ordered; -1 = to be killed */
        int64_t due_ms; /* clock_ms(); INT64_MAX = not in this attempt */
};

/* By the first rank of a span. */
struct again_crashes {
        int first, n;
        int64_t began_ms;
};

struct role_again {
        struct cluster *cluster;
        uint32_t grace_ms;
        bool (*begin)(void *ctx, const struct role_span *s);
        void *ctx;
        uv_timer_t timer;
        struct again_span *spans;
        size_t n, cap;
        struct again_crashes *crashes;
        size_t n_crashes;
        int *of_world;
        size_t n_worlds;
};

/* ---- the list ---- */

static void on_again_due(uv_timer_t *t);

/* Called after each change of the list: the timer is that of the entry due first. */
static void set_again_timer(struct role_again *a)
{
        int64_t first = INT64_MAX;

        for (size_t i = 0; i < a->n; i++)
                first = MIN(first, a->spans[i].due_ms);
        if (first < INT64_MAX)
                uv_timer_start(&a->timer, on_again_due,
                               (uint64_t)MAX(first - clock_ms(), INT64_C(0)), 0);
        else
                uv_timer_stop(&a->timer);
}

static void add_again_span(struct role_again *a, struct again_span s)
{
        a->spans = xgrow(a->spans, a->n, &a->cap, sizeof(*a->spans));
        a->spans[a->n++] = s;
        set_again_timer(a);
}

/* With .ends the agents know that the end of the ranks is ordered. */
static void kill_span(const struct role_again *a, const struct role_span *s)
{
        cluster_signal_ranks(a->cluster, &(struct ranks_signal){ .signo = SIGKILL,
                                                                 .first = (uint32_t)s->first,
                                                                 .n = (uint32_t)s->size,
                                                                 .ends = true });
}

static void on_again_due(uv_timer_t *t)
{
        struct role_again *a = t->data;
        int64_t now = clock_ms();

        for (size_t i = 0; i < a->n;) {
                struct again_span s = a->spans[i];

                if (s.due_ms > now) {
                        i++;
                        continue;
                }
                a->spans[i] = a->spans[--a->n];
                if (s.role < 0)
                        kill_span(a, &s.ranks);
                else if (!a->begin(a->ctx, &s.ranks))
                        add_again_span(a, (struct again_span){ s.ranks, s.role, INT64_MAX });
        }
        set_again_timer(a);
}

/* ---- orders ---- */

void role_again_stop(struct role_again *a, const struct role_span *s)
{
        cluster_signal_ranks(a->cluster, &(struct ranks_signal){ .signo = SIGTERM,
                                                                 .first = (uint32_t)s->first,
                                                                 .n = (uint32_t)s->size,
                                                                 .ends = true });
        add_again_span(a, (struct again_span){ *s, -1, clock_ms() + a->grace_ms });
}

/* The ranks have ended before the grace time: KILL would reach the next processes. */
static void drop_kills(struct role_again *a, const struct role_span *s)
{
        for (size_t i = 0; i < a->n;)
                if (a->spans[i].role < 0 && a->spans[i].ranks.first == s->first)
                        a->spans[i] = a->spans[--a->n];
                else
                        i++;
        set_again_timer(a);
}

/* Returns the entry of a span, a new one without crashes for the first. Valid until the next
 * call. */
static struct again_crashes *find_crashes(struct role_again *a, int first)
{
        for (size_t i = 0; i < a->n_crashes; i++)
                if (a->crashes[i].first == first)
                        return &a->crashes[i];
        a->crashes = xrealloc(a->crashes, a->n_crashes + 1, sizeof(*a->crashes));
        a->crashes[a->n_crashes] = (struct again_crashes){ .first = first };
        return &a->crashes[a->n_crashes++];
}

/* Returns the pause before the next start of ranks, which may fail again and again. */
static uint64_t find_pause(struct role_again *a, const struct role_span *s)
{
        struct again_crashes *c = find_crashes(a, s->first);
        int64_t ms, now = clock_ms();

        if (c->began_ms && now - c->began_ms >= HEALTHY_MS)
                c->n = 0;
        ms = c->n ? (int64_t)BACKOFF_MS << MIN(c->n - 1, 16) : 0;
        ms = MIN(ms, (int64_t)BACKOFF_MAX_MS);
        c->n++;
        /* The start to come, at the end of the pause. */
        c->began_ms = now + ms;
        return (uint64_t)ms;
}

uint64_t role_again_start(struct role_again *a, int role, const struct role_span *s)
{
        uint64_t ms = find_pause(a, s);

        drop_kills(a, s);
        add_again_span(a, (struct again_span){ *s, role, clock_ms() + (int64_t)ms });
        return ms;
}

size_t role_again_count_waiting(const struct role_again *a)
{
        size_t n = 0;

        for (size_t i = 0; i < a->n; i++)
                if (a->spans[i].role >= 0)
                        n += (size_t)a->spans[i].ranks.size;
        return n;
}

/* ---- counts ---- */

/* The list grows with the highest world that has started again; others have 0. */
void role_again_count(struct role_again *a, uint32_t world)
{
        if (world >= a->n_worlds) {
                a->of_world = xrealloc(a->of_world, world + 1, sizeof(*a->of_world));
                while (a->n_worlds <= world)
                        a->of_world[a->n_worlds++] = 0;
        }
        a->of_world[world]++;
}

int role_again_of_world(const struct role_again *a, uint32_t world)
{
        return a && world < a->n_worlds ? a->of_world[world] : 0;
}

/* ---- life cycle ---- */

struct role_again *role_again_create(struct cluster *c, uint32_t grace_ms,
                                     bool (*begin)(void *ctx, const struct role_span *s), void *ctx)
{
        struct role_again *a = xcalloc(1, sizeof(*a));

        *a = (struct role_again){ .cluster = c, .grace_ms = grace_ms, .begin = begin, .ctx = ctx };
        cluster_init_timer(c, &a->timer, a);
        return a;
}

void role_again_close(struct role_again *a)
{
        uv_close((uv_handle_t *)&a->timer, NULL);
}

void role_again_free(struct role_again *a)
{
        free(a->spans);
        free(a->crashes);
        free(a->of_world);
        free(a);
}

/* The counts stay, since HN_RESTART never falls within a run. */
void role_again_forget(struct role_again *a)
{
        a->n = 0;
        uv_timer_stop(&a->timer);
}
