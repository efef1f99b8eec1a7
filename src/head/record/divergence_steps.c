/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The top is the last step reached by half of the ranks. Each step of the window before the top has
 * the time of the median rank, and each rank a usual delay behind the median rank. A rank is behind
 * when the next step is overdue by this measure, and the rank has been still.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/record/divergence_private.h"

enum { SIGMAS = 6 /* beyond these a delay is no chance */ };

/* Finds the step reached by half of the ranks. Ranks without a step count with -1: when more
 * than half have none, there is no top. */
static void find_top(struct divergence_search *s)
{
        size_t n = (size_t)s->in->n_ranks;
        int64_t *steps = xcalloc(n, sizeof(*steps));

        for (size_t i = 0; i < n; i++)
                steps[i] = s->ranks[i].step;
        s->top = divergence_median(steps, n);
        free(steps);
}

/* The place for a step in the ring of a rank; steps of the window do not share a place. */
static int64_t *time_of_step(const struct divergence_search *s, size_t rank, int64_t step)
{
        return &s->times[rank * DIVERGENCE_WINDOW + (size_t)(step % DIVERGENCE_WINDOW)];
}

/* Notes when each rank reached each step of the window. A step that a rank tells twice has the
 * later time. */
static void fill_times(struct divergence_search *s)
{
        const struct trace_log *log = s->in->log;

        for (size_t i = 0; i < log->n; i++) {
                const struct trace_event *e = &log->v[i];
                int64_t step = (int64_t)e->number;

                if (e->kind == TRACE_STEP && e->us <= s->in->until_us &&
                    e->rank < (uint32_t)s->in->n_ranks && step <= s->top &&
                    step > s->top - DIVERGENCE_WINDOW)
                        *time_of_step(s, e->rank, step) = e->us;
        }
}

/* The steps of most ranks. */
struct step_norm {
        int64_t at[DIVERGENCE_WINDOW]; /* when half of the ranks had reached the step; -1 = not
                                          known */
        int64_t step_us;               /* of a step */
        int64_t sigma_us;              /* of a rank, against the rank's usual delay */
        int64_t *delay_us;             /* by rank: the usual delay */
};

/* Finds the median time of each step in the window, and the usual length of a step. Medians,
 * because the late rank must not move the norm. */
static void norm_each_step(const struct divergence_search *s, struct step_norm *norm, int64_t *room)
{
        int64_t took[DIVERGENCE_WINDOW];
        size_t n_took = 0;

        for (int64_t step = MAX(s->top - DIVERGENCE_WINDOW + 1, INT64_C(0)); step <= s->top;
             step++) {
                size_t n = 0;

                for (size_t i = 0; i < (size_t)s->in->n_ranks; i++)
                        if (*time_of_step(s, i, step) >= 0)
                                room[n++] = *time_of_step(s, i, step);
                norm->at[step % DIVERGENCE_WINDOW] =
                        divergence_is_half(s, n) ? divergence_median(room, n) : -1;
                if (step > s->top - DIVERGENCE_WINDOW + 1 && step &&
                    norm->at[step % DIVERGENCE_WINDOW] >= 0 &&
                    norm->at[(step - 1) % DIVERGENCE_WINDOW] >= 0)
                        took[n_took++] = norm->at[step % DIVERGENCE_WINDOW] -
                                         norm->at[(step - 1) % DIVERGENCE_WINDOW];
        }
        norm->step_us = divergence_median(took, n_took);
}

/* Finds the usual delay of each rank behind the norm, and the spread of all delays: a rank that is
 * always last by a second is not late by a second. */
static void norm_each_rank(const struct divergence_search *s, struct step_norm *norm, int64_t *room)
{
        size_t all = 0;

        for (size_t i = 0; i < (size_t)s->in->n_ranks; i++) {
                int64_t delays[DIVERGENCE_WINDOW], copy[DIVERGENCE_WINDOW];
                size_t n = 0;

                for (int64_t step = MAX(s->top - DIVERGENCE_WINDOW + 1, INT64_C(0)); step <= s->top;
                     step++)
                        if (*time_of_step(s, i, step) >= 0 &&
                            norm->at[step % DIVERGENCE_WINDOW] >= 0)
                                delays[n++] = *time_of_step(s, i, step) -
                                              norm->at[step % DIVERGENCE_WINDOW];
                memcpy(copy, delays, n * sizeof(*copy));
                norm->delay_us[i] = divergence_median(copy, n);
                for (size_t k = 0; k < n; k++)
                        room[all++] = llabs(delays[k] - norm->delay_us[i]);
        }
        /* Of normal noise the standard deviation is 1.48 times the median of distances. */
        norm->sigma_us = divergence_median(room, all) * 3 / 2;
}

/* When the next step of a rank is due, with the rank's usual delay. A rank far behind the window is
 * measured by its own last step; a step that half of the ranks have not told is never due. */
static int64_t due_time(const struct divergence_search *s, const struct step_norm *norm,
                        size_t rank)
{
        int64_t next = s->ranks[rank].step + 1;

        if (next <= s->top - DIVERGENCE_WINDOW)
                return s->ranks[rank].step_us + norm->step_us;
        if (norm->at[next % DIVERGENCE_WINDOW] < 0)
                return INT64_MAX / 2;
        return norm->at[next % DIVERGENCE_WINDOW] + MAX(norm->delay_us[rank], INT64_C(0));
}

/* Offers the rank that should have reached the next step long ago, by the norm of the steps and of
 * the rank. */
static void find_late_rank(struct divergence_search *s)
{
        size_t n = (size_t)s->in->n_ranks, behind = 0;
        struct step_norm norm = { .delay_us = xcalloc(n, sizeof(int64_t)) };
        int64_t *room = xcalloc(n * DIVERGENCE_WINDOW, sizeof(*room));
        int worst = -1;

        norm_each_step(s, &norm, room);
        norm_each_rank(s, &norm, room);
        for (size_t i = 0; i < n; i++) {
                /* Two tests: the next step is overdue, and the rank has told nothing for a few
                 * steps. Together these leave out a rank that is slow but goes on. */
                const struct rank_view *r = &s->ranks[i];
                int64_t due = due_time(s, &norm, i);

                if (r->step < 0 || r->step >= s->top ||
                    s->in->until_us <=
                            due + SIGMAS * norm.sigma_us + norm.step_us / 4 + DIVERGENCE_LEAST_US ||
                    s->in->until_us - r->step_us <=
                            DIVERGENCE_STILL * norm.step_us + DIVERGENCE_LEAST_US)
                        continue;
                behind++;
                if (worst < 0 || r->step_us < s->ranks[worst].step_us)
                        worst = (int)i;
        }
        if (worst >= 0)
                divergence_offer(s, worst, due_time(s, &norm, (size_t)worst),
                                 "rank %d has not reached step %lld, which %zu others have", worst,
                                 (long long)s->ranks[worst].step + 1, n - behind);
        free(norm.delay_us);
        free(room);
}

void divergence_look_at_steps(struct divergence_search *s)
{
        find_top(s);
        if (s->top < 0)
                return;
        fill_times(s);
        find_late_rank(s);
}
