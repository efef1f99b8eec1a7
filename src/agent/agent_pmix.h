/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_pmix: ranks that wait for PMIx before they start
 *
 * With MPI_PMIX the environment of each rank comes from the helper (pmix/pmix_service.h), which
 * takes as long as the node needs to load its libpmix. The order waits here meanwhile.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "wire/msg.h"

struct agent;
struct pmix_service;

struct agent_pmix {
        struct pmix_service *service; /* NULL = not asked for */
        struct launch_order order;    /* waits for the service */
        struct strv base;             /* the environment that ranks share, likewise */
        bool waiting;
};

/* Takes over @l and @base and starts the service. Then the ranks are started, or refused. */
void agent_pmix_begin(struct agent *a, struct launch_order *l, struct strv *base);
/* Gives up waiting: refuses the order. */
void agent_pmix_cancel(struct agent *a);
/* The attempt is over. */
void agent_pmix_end(struct agent *a);

/* Adds the variables of PMIx to the environment of a rank. */
void agent_pmix_add_env(const struct agent *a, uint32_t rank, struct strv *env);
/* Returns what a rank that has ended did with PMIx. */
enum rank_mpi agent_pmix_state(const struct agent *a, uint32_t rank);
bool agent_pmix_is_helper(const struct agent *a, pid_t pid);
