/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gpu_record: what the helper hnlaunch-nvml writes for the agent about the node's GPUs
 *
 * Without an argument the helper writes figures again and again, each time a gpu_record; with an
 * argument one gpu_holders with the health of the GPUs, and ends. Both sides are of one build and
 * on one machine, so the layout is the compiler's. A record fits into PIPE_BUF: it is written whole
 * or not at all.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

enum {
        GPU_RECORD_MARK = 0x6c6d766e,
        GPU_RECORD_GPUS = 64,           /* at most; a node has 16 */
        GPU_RECORD_HOLDERS = 120,       /* at most */
        GPU_RECORD_PAUSE_MS = 1000,     /* between two records at least */
        GPU_RECORD_PAUSE_MAX_MS = 8000, /* ... and at most, where the driver needs much time */
        GPU_RECORD_NO_LIBRARY = 1,      /* exit codes: no libnvidia-ml.so.1, or an unusable one */
        GPU_RECORD_NO_DRIVER = 2,       /* ... the library cannot use the driver */
};

#define GPU_RECORD_UNKNOWN UINT32_MAX /* the driver does not tell */

struct gpu_figures {
        uint32_t use_percent, memory_mib, memory_total_mib, celsius, watts;
        uint32_t ecc; /* uncorrected errors since the driver was loaded */
};

struct gpu_record {
        uint32_t mark, n;
        struct gpu_figures gpus[GPU_RECORD_GPUS]; /* by the driver's index */
};

/* A process with memory of a GPU, as the driver knows it. */
struct gpu_holder {
        uint32_t gpu, pid, memory_mib; /* GPU_RECORD_UNKNOWN: how much is not known */
};

/* What the driver does about rows of broken memory. */
enum gpu_remap { GPU_REMAP_NONE, GPU_REMAP_PENDING, GPU_REMAP_FAILED, GPU_REMAP_STATES };

#define GPU_HEALTH_UNKNOWN UINT8_MAX /* the driver does not tell */

/* States of a GPU in a fabric, those of NVML. */
enum gpu_fabric_state {
        GPU_FABRIC_NONE,        /* the GPU is made without */
        GPU_FABRIC_NOT_STARTED, /* waits for the fabric manager */
        GPU_FABRIC_IN_PROGRESS,
        GPU_FABRIC_COMPLETED, /* @status tells how it went */
};

/* Where a GPU is in the fabric of NVLink switches. GPUs of several nodes reach each other through
 * the fabric if cluster and clique are equal, and the cluster is not all zeros. */
struct gpu_fabric {
        uint8_t cluster[16]; /* UUID */
        uint32_t clique;
        uint32_t state;  /* enum gpu_fabric_state; GPU_RECORD_UNKNOWN: the driver does not tell */
        uint32_t status; /* NVML's result of the registration, 0 = good */
        uint32_t health; /* NVML's health mask; GPU_RECORD_UNKNOWN: the driver has none */
};

struct gpu_holders {
        uint32_t mark, n;
        struct gpu_holder v[GPU_RECORD_HOLDERS];
        uint32_t ecc[GPU_RECORD_GPUS];             /* as in struct gpu_figures */
        uint8_t remap[GPU_RECORD_GPUS];            /* enum gpu_remap */
        struct gpu_fabric fabric[GPU_RECORD_GPUS]; /* by the driver's index */
        uint32_t node[GPU_RECORD_GPUS]; /* NUMA node: GPU_RECORD_UNKNOWN, also where there are
                                           several */
};

_Static_assert(sizeof(struct gpu_record) <= PIPE_BUF, "written whole or not at all");
_Static_assert(sizeof(struct gpu_holders) <= PIPE_BUF, "written whole or not at all");
