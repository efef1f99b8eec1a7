/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dial_env: the place of a node in the job, told by the platform, for --dial-in auto
 *
 * An engine: variables in, a place out. The platforms, in the order of the search:
 *
 *   Kubeflow Trainer    PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT; without the
 *                       node rank JOB_COMPLETION_INDEX
 *   Slurm step          SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST, SLURM_STEP_ID
 *   LeaderWorkerSet     LWS_LEADER_ADDRESS, LWS_GROUP_SIZE, LWS_WORKER_INDEX
 *   SageMaker           SM_HOSTS, SM_CURRENT_HOST
 *   Azure ML            AZ_BATCH_MASTER_NODE, or AZ_BATCHAI_MPI_MASTER_NODE; NODE_RANK, or
 *                       OMPI_COMM_WORLD_RANK; AZUREML_NODE_COUNT, or OMPI_COMM_WORLD_SIZE
 *   MASTER_ADDR         with RANK and WORLD_SIZE that count nodes (PAI DLC, PyTorchJob)
 *
 * JobSet and indexed Jobs set only the index of a node: the other variables come from their
 * manifest, by the names of the last row or as options.
 */
#pragma once

#include "base/error.h"

struct dial_place {
        char host[256]; /* of node 0, a name or an address */
        int port, rank, nodes;
        const char *source; /* "--dial-in", "Slurm" ...; static */
};

enum {
        DIAL_PORT = 29400, /* where a platform names none; PyTorch's default for a rendezvous */
        DIAL_SLURM_PORTS = 10000,
        DIAL_SLURM_PORT = 20000, /* the first; a step takes a port by number */
};

enum { DIAL_JOB_MAX = 128 };

/* A @get for this process. */
const char *dial_env_get(void *ctx, const char *name);

/* Fills @p from the variables of @get, NULL = not set. 0; -ENOENT: no platform is known; -EINVAL
 * with @err: a platform is there, but the variables are incomplete or contradict each other.
 * p->source names the platform in both cases. */
int dial_env_read(struct dial_place *p, const char *(*get)(void *ctx, const char *name), void *ctx,
                  struct error *err);

/* Names the job of the resource manager that started this process, the same on every node and
 * another for each job, with letters, digits, dots and dashes: "slurm-77.0". 0, or -ENOENT: there
 * is none. */
int dial_env_job(const char *(*get)(void *ctx, const char *name), void *ctx, char to[DIAL_JOB_MAX]);
