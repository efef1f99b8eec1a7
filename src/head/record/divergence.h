/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence: the first moment at which a rank left what the others did, and never came back
 *
 * The rank that fails first is often not the one that is to blame: the others wait for a rank that
 * sleeps, and one of them reaches its time limit. Only what lasts until the failure counts: a rank
 * that was late once and has come back has not diverged. Pure.
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
        int cause_rank;      /* the rank that failed first; -1 = none, or not known */
        const bool *follows; /* by rank: its end only follows from another; NULL = none does */
};

struct divergence {
        int rank; /* -1 = no rank has diverged */
        int64_t us;
        char text[160]; /* "rank 3 has not reached step 41, which 7 others have" */
};

void divergence_find(const struct divergence_input *in, struct divergence *ret);
