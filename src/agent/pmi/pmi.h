/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI: the process manager's side of PMI-1 and PMI-2 for the ranks of a node
 *
 * Programs built with MPICH, MVAPICH or Intel MPI, and clients of Slurm's libpmi2, speak these
 * protocols over a stream to their launcher: the own rank, the places of the others, put and get of
 * addresses, barrier. A client chooses the version with the first line. Version 1 is answered as
 * 1.1, with neither groups nor threads; spawn is refused as not supported, as the protocols allow.
 * Sources: MPICH's src/pmi and Hydra's server, Slurm's contribs/pmi2 and plugins/mpi/pmi2.
 *
 * No descriptors: bytes of a rank go in by pmi_receive(), answers leave by ops.send. Values travel
 * with fences (agent/pmi/fence.h) and are fetched when a rank requests a key unknown here. MPI_Init
 * counts as joining the store, MPI_Abort as hn_abort(). Input of a rank is bounded and checked
 * against the rank's state: after a fault the rank is not heard any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/pmi/fence.h"

struct pmi;

/* All borrowed for the call of pmi_create(), but @relay and @world, which outlive the object. */
struct pmi_config {
        struct relay *relay;
        struct fence_world world;
        const uint32_t *ranks;    /* of this node, by index */
        const uint32_t *programs; /* of each rank: the number of the program; NULL = 0 */
        uint32_t n_ranks;
        const char *job;     /* name of the key space: characters of a name, no space */
        const char *mapping; /* PMI_process_mapping (wire/node_map.h); "" = tell nothing */
        bool only_version1;  /* refuse PMI-2 */
};

struct pmi_ops {
        /* Answers to the rank with this index; lent. May not call the object. */
        void (*send)(void *ctx, uint32_t index, const void *bytes, size_t len);
};

/* NULL = no memory. */
struct pmi *pmi_create(const struct pmi_config *config, struct pmi_ops ops, void *ctx);
void pmi_destroy(struct pmi *p); /* NULL is fine */

/* Takes bytes of a rank. -EPROTO with @err: the rank broke a rule and is not heard any more; the
 * caller should close the connection. */
int pmi_receive(struct pmi *p, uint32_t index, const void *bytes, size_t len, struct error *err);

/* A client of PMI_PORT names a rank. pmi_parse_claim() takes the first line, without the LF, and
 * returns the index of the rank, or with @err -EPROTO: another line, or -ENOENT: no rank of this
 * number runs here. pmi_may_begin(): the rank has not begun PMI, or a program of the rank has
 * finalized, and the next may begin. pmi_begin() then answers, over the connection made for the
 * rank. */
int pmi_parse_claim(const struct pmi *p, char *line, size_t len, struct error *err);
bool pmi_may_begin(const struct pmi *p, uint32_t index);
void pmi_begin(struct pmi *p, uint32_t index);

/* The rank's process has ended, and the head is being told. Ranks waiting for this rank in a
 * barrier then hear of the failure. */
void pmi_left(struct pmi *p, uint32_t index);
/* Returns the request for which the rank waits, by a name of the store's: "BARRIER", "GET"; or
 * "FINALIZE", a barrier without new keys; NULL = the rank does not wait. */
const char *pmi_waits_for(const struct pmi *p, uint32_t index);
/* Shows the store whether ranks wait for other ranks of this node, so the head looks for long waits
 * (--wait-warn). Returns whether any rank waits. */
bool pmi_show_waits(struct pmi *p);
/* Has the rank begun PMI, and neither finalized PMI nor aborted the job? An exit after an abort is
 * no surprise, whatever the code: ranks of MPICH 5 were seen to exit with 0 then. */
bool pmi_is_unfinished(const struct pmi *p, uint32_t index);
bool pmi_is_unused(const struct pmi *p, uint32_t index); /* nothing was begun */
