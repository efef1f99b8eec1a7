/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a world begins with its first rank. A look is due for a world that does not idle, or
 * without others for those that idle, once all are silent. world_watches_share() then leaves out
 * the worlds that go on.
 */
#include "head/job/world_watches.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "head/job/attempt.h"
#include "head/job/world_servers.h"
#include "head/model/rank_board.h"
#include "head/options/options.h"
#include "head/options/program_options.h"

struct world_hang {
        struct hang_watch hang;
        bool idles;
};

/* Whether ranks of the role may wait for requests for hours: a role beside --main or, without
 * --main, one that is ready by a port. */
static bool may_role_idle(const struct options *o, int program)
{
        const struct program_options *p = options_program(o, (size_t)program);

        if (!p || !p->role.name)
                return false;
        if (o->main_roles.n)
                return !strv_has(&o->main_roles, p->role.name);
        return p->conduct.ready.kind == READY_TCP || p->conduct.ready.kind == READY_HTTP;
}

/* Whether all ranks of a world may idle. A single rank has no others to wait for. */
static bool may_world_idle(const struct plan *plan, size_t world, const struct options *o)
{
        const struct plan_world *w = &plan->worlds[world];

        for (int i = w->first; i < w->first + w->size && w->size > 1; i++)
                if (!may_role_idle(o, plan->ranks[i].program))
                        return false;
        return true;
}

void world_watches_begin(struct world_watches *w, const struct attempt *a, const struct options *o,
                         const struct rank_board *ranks)
{
        world_watches_finish(w);
        *w = (struct world_watches){
                .attempt = a, .ranks = ranks, .n = a->plan->n_worlds, .hung = -1
        };
        w->v = xcalloc(w->n, sizeof(*w->v));
        for (size_t i = 0; i < w->n; i++) {
                hang_watch_begin(&w->v[i].hang, o->hang_after_ms, clock_ms());
                w->v[i].idles = w->n > 1 && may_world_idle(a->plan, i, o);
        }
}

void world_watches_finish(struct world_watches *w)
{
        free(w->v);
        *w = (struct world_watches){ .hung = -1 };
}

/* NULL before the first launch. */
static struct world_hang *watch_of_rank(const struct world_watches *w, int rank)
{
        return w->n ? &w->v[w->attempt->plan->ranks[rank].world] : NULL;
}

void world_watches_alive(struct world_watches *w, int rank)
{
        struct world_hang *own = watch_of_rank(w, rank);

        if (own)
                hang_watch_alive(&own->hang);
}

void world_watches_output(struct world_watches *w, int rank)
{
        struct world_hang *own = watch_of_rank(w, rank);

        if (own)
                hang_watch_output(&own->hang);
}

/* For all worlds: dumps are ordered for whole nodes. */
void world_watches_dumping(struct world_watches *w, bool on)
{
        for (size_t i = 0; i < w->n; i++)
                w->v[i].hang.dumping = on;
}

static uint64_t count_met(const struct world_watches *w, size_t world)
{
        return world_servers_met(w->attempt->stores, (uint32_t)world);
}

static bool has_living_ranks(const struct world_watches *w, size_t world)
{
        const struct plan_world *p = &w->attempt->plan->worlds[world];

        for (int r = p->first; r < p->first + p->size && r < w->ranks->n; r++)
                if (w->ranks->rows[r].life == RANK_ALIVE)
                        return true;
        return false;
}

/* Whether a world that does not idle lives. */
static bool some_world_works(const struct world_watches *w)
{
        for (size_t i = 0; i < w->n; i++)
                if (!w->v[i].idles && has_living_ranks(w, i))
                        return true;
        return false;
}

bool world_watches_due(struct world_watches *w)
{
        bool works = some_world_works(w), due = false, all_silent = true;
        int64_t now = clock_ms();

        for (size_t i = 0; i < w->n; i++) {
                struct hang_watch *own = &w->v[i].hang;
                bool lives = has_living_ranks(w, i);

                if (!lives)
                        hang_watch_alive(own); /* the time begins with the first rank */
                due |= hang_watch_due(own, now, count_met(w, i)) && w->v[i].idles != works;
                all_silent &= !lives || hang_watch_is_silent(own, now);
        }
        /* Without others the worlds that idle are those that can hang. */
        return due && (works || all_silent);
}

void world_watches_ask(struct world_watches *w)
{
        for (size_t i = 0; i < w->n; i++)
                hang_watch_ask(&w->v[i].hang, clock_ms(), count_met(w, i));
}

bool world_watches_found(struct world_watches *w, const struct intlist *worlds, bool tell)
{
        bool found = false;

        for (size_t i = 0; i < worlds->n; i++) {
                size_t world = (size_t)worlds->v[i];

                if (world >= w->n ||
                    !hang_watch_found(&w->v[world].hang, count_met(w, world), tell))
                        continue;
                /* The first of the list is the one that is asked about later. */
                w->hung = found ? w->hung : (int)world;
                found = true;
        }
        return found;
}

/* Whether the world that was found last shows no sign of life since. */
bool world_watches_stand(const struct world_watches *w)
{
        return w->n && w->hung >= 0 &&
               hang_watch_stands(&w->v[w->hung].hang, count_met(w, (size_t)w->hung));
}

/* Only while world_watches_stand(). */
int64_t world_watches_silent_ms(const struct world_watches *w)
{
        return clock_ms() - w->v[w->hung].hang.alive_ms;
}

enum why_share world_watches_share(const struct world_watches *w, int world, bool due)
{
        const struct world_hang *own = &w->v[world];

        if (w->n == 1)
                return WHY_JUDGED;
        if (due && (!hang_watch_is_silent(&own->hang, clock_ms()) || own->hang.told ||
                    !has_living_ranks(w, (size_t)world)))
                return WHY_LEFT_OUT;
        return own->idles && some_world_works(w) ? WHY_IDLES : WHY_JUDGED;
}
