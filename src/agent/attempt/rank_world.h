/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank_world: the ranks of one order on this node, and the parts that serve only these ranks
 *
 * A job without roles has one world. A job of several roles has an order for each world, and on a
 * node with ranks of several worlds each of these worlds has an object.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/rank/worker.h"
#include "base/strv.h"
#include "wire/msg.h"

struct node_attempt;
struct order_binding;
struct pmi_link;
struct pmix_service;
struct ready_probes;
struct store_access;

/* Ranks that wait for PMIx: with MPI_PMIX the environment of each comes from the helper
 * (agent/pmix/pmix_service.h), which takes as long as the node needs to load its libpmix. */
struct pmix_wait {
        struct pmix_service *service; /* NULL = not asked for */
        struct launch_order *order;   /* waits for the service; NULL = none does */
        struct strv base;             /* the environment that ranks share, likewise */
};

/* Output of an ended rank without credit from the head, by stream. */
struct owed_output {
        uint32_t rank, bytes[2];
};

/* Ranks that start again (node_attempt_again.c). */
struct rank_again {
        struct launch_order *order; /* waits for the end of leftovers; NULL = none */
        uint64_t since_ns;          /* when leftovers were told to end */
        struct owed_output *owed;
        size_t n_owed;
        bool before; /* ranks of this world have run here */
};

struct rank_world {
        struct node_attempt *attempt;
        struct store_access *store; /* borrowed */
        uint32_t first, size;       /* number in the job of rank 0, and ranks on all nodes */
        char *folder;               /* for files of MPI */
        char *socket;               /* path of the Unix socket of the store */
        struct pmi_link *pmi;       /* NULL = none */
        struct ready_probes *ready; /* NULL = no rank is asked */
        struct pmix_wait pmix;
        struct rank_again again;
        struct order_binding *binding; /* NULL = no rank is bound */
};

/* Creates the world of @l in the folder of the job, @dir; @store_path: the socket of world 0. NULL
 * with @err. */
struct rank_world *rank_world_create(struct node_attempt *t, struct store_access *store,
                                     const char *dir, const char *store_path,
                                     const struct launch_order *l, struct error *err);
void rank_world_destroy(struct rank_world *w); /* NULL is fine */
bool rank_world_has(const struct rank_world *w, uint32_t rank);
/* Whether one of @n ranks from @first on belongs to the world. */
bool rank_world_overlaps(const struct rank_world *w, uint32_t first, uint32_t n);

/* Notes the output of an ended rank for which no credit has come. */
void rank_world_owe(struct rank_world *w, uint32_t rank, const uint32_t bytes[2]);
/* Returns the note of a rank, NULL = none. */
const struct owed_output *rank_world_owed(const struct rank_world *w, uint32_t rank);
/* The head has credited output of a rank without a process; NULL is fine. */
void rank_world_credit(struct rank_world *w, const struct credit *m);

/* Returns how an ended rank has used MPI. */
enum rank_mpi rank_world_end_mpi(struct rank_world *w, uint32_t rank);
/* Whether the rank has not begun MPI. */
bool rank_world_is_mpi_unused(const struct rank_world *w, uint32_t rank);
