/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step counts only if the step before is known, too: the own time of a step is the distance of
 * both without the waits in the store. The means of all ranks are sorted, the slowest get a row
 * each and the rest share the last row. A cell is the mean of the steps with an end in the column.
 * A run has at most as many columns as steps, because more would leave gaps.
 */
#include "head/record/step_times.h"

#include <stdlib.h>

#include "base/memory.h"

enum { STEPS_LEAST = 20 }; /* of a rank; a mean of fewer is chance */

/* Sums for the cells of a row. */
struct row_sums {
        double *us;
        size_t *n;
};

struct rank_mean {
        int rank;
        size_t n;
        double us; /* sum, then mean */
};

/* The slowest first, then by number. */
static int compare_means(const void *a, const void *b)
{
        const struct rank_mean *x = a, *y = b;

        if (x->us != y->us)
                return x->us > y->us ? -1 : 1;
        return x->rank - y->rank;
}

/* Returns the means of all ranks with steps, the slowest first. */
static struct rank_mean *find_means(const struct step_list *l, size_t n_ranks, size_t *ret_n)
{
        struct rank_mean *v = xcalloc(n_ranks + 1, sizeof(*v));
        size_t n = 0;

        for (size_t i = 0; i < n_ranks; i++)
                v[i].rank = (int)i;
        for (size_t i = 0; i < l->n; i++)
                if (l->v[i].own_us >= 0) {
                        v[l->v[i].rank].us += l->v[i].own_us;
                        v[l->v[i].rank].n++;
                }
        for (size_t i = 0; i < n_ranks; i++)
                if (v[i].n >= STEPS_LEAST) {
                        v[n] = v[i];
                        v[n].us /= (double)v[n].n;
                        n++;
                }
        qsort(v, n, sizeof(*v), compare_means);
        *ret_n = n;
        return v;
}

/* Finds first and last step and time. The list is in the order of time and not of steps: a restart
 * goes back. */
static void find_bounds(struct step_times *t, const struct step_list *l)
{
        t->first = t->last = l->v[0].step;
        t->from_us = t->until_us = l->v[0].us;
        for (size_t i = 0; i < l->n; i++) {
                t->first = MIN(t->first, l->v[i].step);
                t->last = MAX(t->last, l->v[i].step);
                t->until_us = MAX(t->until_us, l->v[i].us);
        }
}

/* Makes the rows: of the slowest ranks, and of the others. Returns the row of each rank, malloc'ed.
 */
static size_t *make_step_rows(struct step_times *t, const struct rank_mean *means, size_t n,
                              size_t n_ranks)
{
        size_t *row_of = xcalloc(n_ranks + 1, sizeof(*row_of));

        t->n_rows = MIN(n, (size_t)STEP_TIMES_ROWS);
        t->rows = xcalloc(t->n_rows, sizeof(*t->rows));
        for (size_t i = 0; i < n_ranks; i++)
                row_of[i] = SIZE_MAX;
        for (size_t i = 0; i < n; i++) {
                struct step_row *r = &t->rows[MIN(i, t->n_rows - 1)];

                row_of[means[i].rank] = MIN(i, t->n_rows - 1);
                /* A second rank in the row makes a row of others. */
                r->rank = r->n ? -1 : means[i].rank;
                r->own_us = (r->own_us * (double)r->n + means[i].us) / (double)(r->n + 1);
                r->n++;
        }
        return row_of;
}

/* Fills each cell with the mean own time of the row's steps in the column's time; -1 = no step. Own
 * time leaves out waits for other ranks, or all ranks would look slow. */
static void fill_cells(struct step_times *t, const struct step_list *l, const size_t *row_of)
{
        size_t cells = t->n_rows * t->columns;
        struct row_sums sums = { xcalloc(cells, sizeof(double)), xcalloc(cells, sizeof(size_t)) };
        double us = (double)MAX(t->until_us - t->from_us, INT64_C(1)) / (double)t->columns;

        for (size_t i = 0; i < l->n; i++) {
                size_t column = (size_t)((double)(l->v[i].us - t->from_us) / us);
                size_t row = row_of[l->v[i].rank];
                size_t at = row * t->columns + MIN(column, t->columns - 1);

                if (l->v[i].own_us < 0 || row == SIZE_MAX)
                        continue;
                sums.us[at] += l->v[i].own_us;
                sums.n[at]++;
        }
        for (size_t r = 0; r < t->n_rows; r++) {
                t->rows[r].cells = xcalloc(t->columns, sizeof(double));
                for (size_t c = 0; c < t->columns; c++) {
                        size_t at = r * t->columns + c;

                        t->rows[r].cells[c] = sums.n[at] ? sums.us[at] / (double)sums.n[at] : -1;
                }
        }
        free(sums.us);
        free(sums.n);
}

void step_times_find(struct step_times *t, const struct trace_log *log,
                     const struct trace_places *places, size_t columns)
{
        struct step_list l;
        struct rank_mean *means;
        size_t n, *row_of;

        *t = (struct step_times){ .columns = MAX(columns, (size_t)1) };
        step_list_collect(log, places, &l);
        means = find_means(&l, places->n_ranks, &n);
        /* With a single rank there is nothing to compare. */
        if (n > 1) {
                find_bounds(t, &l);
                /* More columns than steps would have gaps. */
                t->columns = MIN(t->columns, (size_t)(t->last - t->first) + 1);
                t->median_us = means[n / 2].us;
                row_of = make_step_rows(t, means, n, places->n_ranks);
                fill_cells(t, &l, row_of);
                free(row_of);
        }
        free(means);
        step_list_finish(&l);
}

void step_times_finish(struct step_times *t)
{
        for (size_t i = 0; i < t->n_rows; i++)
                free(t->rows[i].cells);
        free(t->rows);
        *t = (struct step_times){ 0 };
}

int step_times_shade(const struct step_times *t, double own_us)
{
        /* Finer near the median, where most ranks are. */
        static const double least[] = { 1.1, 1.25, 1.6, 2.5 };
        int shade = 0;

        if (own_us < 0)
                return -1;
        while (shade < (int)ARRAY_SIZE(least) && own_us > t->median_us * least[shade])
                shade++;
        return shade;
}

/* What is known of a rank in the pass over the log. */
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
                        /* A wait that began before the last step counts from the step on. */
                        p->waited_us += (double)MIN((int64_t)e->more, e->us - p->us);
                if (!p || e->kind != TRACE_STEP)
                        continue;
                to->v[to->n++] = (struct timed_step){
                        .node = places->node_of[e->rank],
                        .rank = e->rank,
                        .step = (int64_t)e->number,
                        .us = e->us,
                        /* A step that was left out would make the next one look twice as long. */
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
