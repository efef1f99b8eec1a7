/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lone_rank: a rank in an MPI world of one, which ended well without the others
 */
#pragma once

#include <stdbool.h>

#include "head/term/diag.h"
#include "wire/msg.h"

struct lone_rank {
        const struct exited *end;
        const struct plan *plan; /* has its name; NULL = "rank 3" */
        const char *host;
        const char *mpi; /* of the program, as its file shows; "" = none known */
        unsigned kind;   /* enum mpi_kind of the launch */
        bool joined;     /* the rank has found the others in the store */
};

/* Warns (HN407) of a rank with exit code 0 that did not ask for the others: of a program known to
 * use MPI, or with a loaded library that does not fit the kind of the launch, and not in the store.
 * False: no such rank, and @d is unchanged. */
bool lone_rank_warn(const struct lone_rank *r, struct diags *d);

/* Whether the MPI of the rank was seen to begin a world of one, and nothing but MPI could have
 * brought the ranks together. */
bool lone_rank_is_alone(const struct lone_rank *r);
/* Writes why a job ends in which this rank and another were alone, @both as "ranks 0 and 3",
 * with the way that fits. */
void lone_rank_sentence(const struct lone_rank *r, const char *both, char *to, size_t size);
