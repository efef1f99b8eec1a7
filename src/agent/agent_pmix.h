/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pmix_wait: ranks that wait for PMIx before they start
 *
 * With MPI_PMIX the environment of each rank comes from the helper (pmix/pmix_service.h), which
 * takes as long as the node needs to load its libpmix. The order waits here meanwhile.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "wire/msg.h"

struct node_attempt;
struct pmix_service;

struct pmix_wait {
        struct pmix_service *service; /* NULL = not asked for */
        struct launch_order *order;   /* waits for the service; NULL = none does */
        struct strv base;             /* the environment that ranks share, likewise */
};

/* Takes over @l and @base and starts the service. Then the ranks are started, or refused. */
void pmix_wait_begin(struct node_attempt *t, struct launch_order *l, struct strv *base);
/* Gives up waiting: refuses the order. */
void pmix_wait_cancel(struct node_attempt *t);
/* The attempt is over. */
void pmix_wait_end(struct node_attempt *t);

/* Adds the variables of PMIx to the environment of a rank. */
void pmix_wait_add_env(const struct node_attempt *t, uint32_t rank, struct strv *env);
/* Returns what a rank that has ended did with PMIx. */
enum rank_mpi pmix_wait_state(const struct node_attempt *t, uint32_t rank);
bool pmix_wait_is_helper(const struct node_attempt *t, pid_t pid);
