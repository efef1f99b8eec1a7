/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

static pid_t living_pid(const struct worker *w)
{
        return w->reaped || !w->started ? 0 : w->pid;
}

static bool is_of_all_ranks(const struct inspect_order *o)
{
        return o->what != INSPECT_STACKS && o->what != INSPECT_CORE;
}

/* In a process namespace a process does not have the number that its core file has. */
static void refuse_core(struct uplink *up, const struct inspect_order *o)
{
        struct inspected m = { .number = o->number, .rank = o->ranks[0] };

        snprintf(m.problem, sizeof(m.problem), "with --contain pidns none is looked for");
        inspected_encode(&up->out, &m);
}

void agent_inspect(struct agent_attempt *t, const struct inspector_paths *paths,
                   const struct frame *f)
{
        struct inspect_order o;
        struct inspector_rank *ranks;
        size_t n = 0;

        if (inspect_order_decode(&o, f, NULL) < 0)
                return;
        if (o.what == INSPECT_CORE && o.n_ranks && t->contain.pidns.keeper) {
                refuse_core(t->inspection.child[0].up, &o);
                inspect_order_finish(&o);
                return;
        }
        ranks = xcalloc(MAX(t->n_workers, (size_t)o.n_ranks), sizeof(*ranks));
        if (o.what == INSPECT_CORE && o.n_ranks)
                ranks[n++] = (struct inspector_rank){ o.ranks[0], (pid_t)o.pid };
        for (size_t i = 0; is_of_all_ranks(&o) && i < t->n_workers; i++)
                ranks[n++] =
                        (struct inspector_rank){ t->workers[i]->rank, living_pid(t->workers[i]) };
        for (uint32_t k = 0; o.what == INSPECT_STACKS && k < o.n_ranks; k++)
                for (size_t i = 0; i < t->n_workers && n < o.n_ranks; i++)
                        if (t->workers[i]->rank == o.ranks[k])
                                ranks[n++] = (struct inspector_rank){ o.ranks[k],
                                                                      living_pid(t->workers[i]) };
        inspection_start(&t->inspection, &o, ranks, n, paths);
        free(ranks);
        inspect_order_finish(&o);
}
