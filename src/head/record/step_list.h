/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step list: the steps that ranks have told, with the time that each took by itself
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "head/record/trace_log.h"

/* A step that a rank has reported. */
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
