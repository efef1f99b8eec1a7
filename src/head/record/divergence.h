/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence: the first moment at which a rank left the course of the others, for good
 *
 * The rank with the first failure is often not to blame: when a rank sleeps, all others wait for
 * it, and the first of them to reach a time limit fails. A sign counts only if the sign lasts until
 * the failure: a rank late once, and back since, has not diverged. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/record/trace_log.h"

struct divergence_input {
        const struct trace_log *log;
        int n_ranks;
        int64_t until_us;    /* of the first failure, or of the order to stop */
        int cause_rank;      /* of the first failure; -1 = none, or not known */
        const bool *follows; /* by rank: the end follows from another rank's; NULL = no end does */
};

struct divergence {
        int rank; /* -1 = no rank has diverged */
        int64_t us;
        bool words;     /* the rank of the failure began to write its last words */
        char text[160]; /* "rank 3 has not reached step 41, which 7 others have" */
};

void divergence_find(const struct divergence_input *in, struct divergence *ret);
