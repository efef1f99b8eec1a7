/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspector: answers an INSPECT, in a separate process
 *
 * Tools and files of ranks may hang, and the agent must not.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "wire/status_msg.h"

struct gpu_record;

struct inspector_rank {
        uint32_t rank;
        pid_t pid; /* of the worker; 0 = ended. Of INSPECT_FACTS: a process of the last attempt */
};

struct inspector_paths {
        /* Where PyTorch's flight recorder makes FIFOs and dumps: before the rank; NULL =
         * nowhere. */
        const char *pipes, *dumps;
        const char *cwd;                     /* of the ranks; NULL, "" = as of the agent */
        const struct gpu_record *first_gpus; /* in the last attempt; NULL = not known */
};

/* Writes an INSPECTED for each rank to @to, the last with .left 0, or the answers of RAS or of
 * flight recorders, or facts of the node. Ends early on SIGTERM, after all tools are killed. */
void inspector_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                   const struct inspector_paths *paths, int to);
