/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step times: how long the steps of each rank took by itself, over the time of a run, for a heat
 * map
 *
 * The slowest ranks have a row each, the others share a row. The time between the first and the
 * last step is divided into columns of equal length. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/record/trace_log.h"

enum { STEP_TIMES_ROWS = 8 }; /* at most, with the row of the others */

struct step_row {
        int rank;      /* -1 = the others */
        size_t n;      /* ranks of the row */
        double own_us; /* mean of the rank's steps */
        double *cells; /* by column, mean of the steps with an end there; below 0 = no step */
};

struct step_times {
        int64_t first, last; /* steps */
        int64_t from_us, until_us;
        double median_us; /* of the means of all ranks */
        size_t columns;
        struct step_row *rows; /* the slowest first */
        size_t n_rows;         /* 0 = too few steps or ranks to tell */
};

void step_times_find(struct step_times *t, const struct trace_log *log,
                     const struct trace_places *places, size_t columns);
void step_times_finish(struct step_times *t);
/* How dark the cell is, from 0 (as fast as the median) to 4 (three times as long); -1 = empty. */
int step_times_shade(const struct step_times *t, double own_us);

/* A step reported by a rank, with the own time of the rank. */
struct timed_step {
        int node;
        uint32_t rank;
        int64_t step, us;
        double own_us; /* since the step before, without waits in the store; below 0 = not known */
        double delay_us; /* behind the median rank; 0 after step_list_collect() */
};

struct step_list {
        struct timed_step *v;
        size_t n;
};

/* In the order of time. */
void step_list_collect(const struct trace_log *log, const struct trace_places *places,
                       struct step_list *to);
void step_list_finish(struct step_list *l);
