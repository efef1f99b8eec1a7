/* SPDX-License-Identifier: Apache-2.0 */
#include "head/record/step_list.h"

#include <stdlib.h>

#include "base/memory.h"

struct rank_pace {
        int64_t step, us; /* the newest; step -1 = none */
        double waited_us; /* since then */
};

void step_list_collect(const struct trace_log *log, const struct trace_places *places,
                       struct step_list *to)
{
        struct rank_pace *paces = xcalloc(places->n_ranks, sizeof(*paces));

        *to = (struct step_list){ xcalloc(log->n + 1, sizeof(*to->v)), 0 };
        for (size_t i = 0; i < places->n_ranks; i++)
                paces[i].step = -1;
        for (size_t i = 0; i < log->n; i++) {
                const struct trace_event *e = &log->v[i];
                struct rank_pace *p = e->rank < places->n_ranks ? &paces[e->rank] : NULL;

                if (p && trace_event_waits(e) && p->step >= 0)
                        p->waited_us += (double)MIN((int64_t)e->more, e->us - p->us);
                if (!p || e->kind != TRACE_STEP)
                        continue;
                to->v[to->n++] = (struct timed_step){
                        .node = places->node_of[e->rank],
                        .rank = e->rank,
                        .step = (int64_t)e->number,
                        .us = e->us,
                        .own_us = p->step >= 0 && (int64_t)e->number == p->step + 1
                                          ? (double)(e->us - p->us) - p->waited_us
                                          : -1,
                };
                *p = (struct rank_pace){ (int64_t)e->number, e->us, 0 };
        }
        free(paces);
}

void step_list_finish(struct step_list *l)
{
        free(l->v);
        *l = (struct step_list){ 0 };
}
