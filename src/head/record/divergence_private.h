/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence private: shared by the three files of the search
 *
 *   divergence.c         the signs but for steps, and the choice
 *   divergence_view.c    the state of each rank at the end
 *   divergence_steps.c   ranks behind the others
 */
#pragma once

#include "base/macros.h"
#include "head/model/burst.h"
#include "head/record/divergence.h"

enum {
        DIVERGENCE_SECONDS = 3,     /* a rank's samples in a row, all alike, that make a state */
        DIVERGENCE_LEAST_US = 1000, /* shorter delays mean nothing */
        DIVERGENCE_STILL = 3,       /* a rank is still after a pause of so many steps, or outputs */
        DIVERGENCE_WINDOW = 64,     /* steps compared */
};

/* The newest request of a rank that waits for other ranks. */
struct rank_wait {
        bool lasts;  /* without an answer at the end, or with a failure */
        bool failed; /* before the end */
        uint32_t key;
        int64_t since_us;
};

struct rank_view {
        int64_t step, step_us; /* the newest; -1 = none */
        struct rank_wait wait;
        size_t outs;
        int64_t out_us, gap_us; /* of the last output; the longest time between two */
        struct burst errors;    /* the newest stderr, in time since the start of hnlaunch */
        int64_t exit_us;        /* -1 = not ended */
        int status;
        char cpu[DIVERGENCE_SECONDS],
                before;     /* class of the newest samples; of the sample before */
        int64_t changed_us; /* of the first sample of the class of now */
};

struct divergence_search {
        const struct divergence_input *in;
        struct rank_view *ranks;
        int64_t *times; /* by rank and step modulo DIVERGENCE_WINDOW; -1 = none */
        int64_t top;    /* the last step reached by half of the ranks; -1 = none */
        int64_t *usual; /* durations of waits with a good end */
        size_t n_usual;
        int64_t *acts; /* of the failed rank: steps, ends of waits, output */
        size_t n_acts;
        struct divergence best;
};

/* Reads all events of the log into the views of the ranks. */
void divergence_view(struct divergence_search *s);
/* Offers the rank furthest behind the steps of the others. */
void divergence_look_at_steps(struct divergence_search *s);

/* Offers a rank diverged at @us. The earliest offer counts. */
void divergence_offer(struct divergence_search *s, int rank, int64_t us, const char *fmt, ...)
        PRINTF(4, 5);
/* Whether @n ranks are half of all. */
bool divergence_is_half(const struct divergence_search *s, size_t n);
int64_t divergence_median(int64_t *v, size_t n); /* sorts @v; 0 of nothing */
