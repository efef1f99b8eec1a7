/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_inspect.h"

#include <stdlib.h>

#include "base/memory.h"

static pid_t living_pid(const struct worker *w)
{
        return w->reaped || !w->started ? 0 : w->pid;
}

void agent_inspect(struct agent_attempt *t, const struct inspector_paths *paths,
                   const struct frame *f)
{
        struct inspect_order o;
        struct inspector_rank *ranks;
        size_t n = 0;

        if (inspect_order_decode(&o, f, NULL) < 0)
                return;
        ranks = xcalloc(MAX(t->n_workers, (size_t)o.n_ranks), sizeof(*ranks));
        for (size_t i = 0; o.what != INSPECT_STACKS && i < t->n_workers; i++)
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
