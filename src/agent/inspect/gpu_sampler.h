/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gpu_sampler: use of the node's NVIDIA GPUs
 *
 * The helper hnlaunch-nvml asks the driver, which may take seconds, or never answer; the agent only
 * reads the helper's records. Without figures a sample has no GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/helper/gpu_record.h"
#include "wire/status_msg.h"

struct gpu_sampler {
        pid_t pid;         /* of the helper, until reaped; 0 = none */
        int fd;            /* of the records; -1 = none are expected */
        uint64_t begin_ms; /* when the helper may be started, or was */
        uint64_t heard_ms; /* when a record came; 0 = none yet */
        struct gpu_record in, newest;
        struct gpu_record first; /* of the attempt; .mark 0 = none yet */
        size_t have;             /* bytes of .in */
        bool told;               /* of a failure, since the start of the attempt */
};

#define GPU_SAMPLER_INIT                                                                           \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* Adds the helper's last record to @m, if fresh. Starts the helper unless running; a failed helper
 * is started again after a minute. Never waits for the helper. */
void gpu_sampler_take(struct gpu_sampler *s, struct sample *m);
/* Forgets the record of the attempt before. */
void gpu_sampler_begin(struct gpu_sampler *s);
/* Ends the helper. */
void gpu_sampler_stop(struct gpu_sampler *s);
/* Notes the end of a child of the agent. */
void gpu_sampler_reaped(struct gpu_sampler *s, pid_t pid, int status);
