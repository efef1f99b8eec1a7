/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI: the process manager's side of PMI-1 and PMI-2 for the ranks of a node
 *
 * Programs built with MPICH, MVAPICH or Intel MPI, and clients of Slurm's libpmi2, speak these
 * protocols over a stream to their launcher: who am I, where are the others, put and get of
 * addresses, barrier. A client chooses the version with its first line. Version 1 is answered as
 * 1.1, with neither groups nor threads; spawn is refused as not supported, as the protocols allow.
 * Sources: MPICH's src/pmi and Hydra's server, Slurm's contribs/pmi2 and plugins/mpi/pmi2.
 *
 * No descriptors: bytes of a rank go in by pmi_receive(), answers leave by ops.send. Values travel
 * with fences (agent/pmi/fence.h) and are fetched when a rank asks for a key that is not known
 * here. MPI_Init counts as joining the store, MPI_Abort as hn_abort(). What comes from a rank is
 * bounded and judged by state: after a fault the rank is not heard any more.
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
        const uint32_t *programs; /* the number of its program, for each; NULL = 0 */
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

/* Takes bytes of a rank. -EPROTO with @err: the rank broke a rule and is not heard any more; its
 * connection should be closed. */
int pmi_receive(struct pmi *p, uint32_t index, const void *bytes, size_t len, struct error *err);

/* A client of PMI_PORT says which rank it is. pmi_parse_claim() takes its first line, without the
 * LF, and returns the index of the rank, or with @err -EPROTO: another line, or -ENOENT: no such
 * rank runs here. pmi_may_begin(): the rank has not begun PMI, or a program of it has finalized, so
 * that the next may begin. pmi_begin() then answers, when the connection is that of the rank. */
int pmi_parse_claim(const struct pmi *p, char *line, size_t len, struct error *err);
bool pmi_may_begin(const struct pmi *p, uint32_t index);
void pmi_begin(struct pmi *p, uint32_t index);

/* The rank's process has ended, and the head is being told. Ranks that wait for this one in a
 * barrier then hear that it failed. */
void pmi_left(struct pmi *p, uint32_t index);
/* What the rank waits for, as the name of a request to the store: "BARRIER", "GET"; or "FINALIZE",
 * a barrier without new keys; NULL = not. */
const char *pmi_waits_for(const struct pmi *p, uint32_t index);
/* Shows the store that ranks wait for other ranks of this node, so that the head looks for waits
 * that last (--wait-warn), or that none does any more. Returns whether one does. */
bool pmi_show_waits(struct pmi *p);
/* Has the rank begun PMI, and neither finalized it nor aborted the job? An exit after an abort is
 * no surprise, whatever its code: ranks of MPICH 5 were seen to exit with 0 then. */
bool pmi_is_unfinished(const struct pmi *p, uint32_t index);
bool pmi_is_unused(const struct pmi *p, uint32_t index); /* nothing was begun */
