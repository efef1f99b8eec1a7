/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspector: answers an INSPECT, in a process of its own
 *
 * Tools and files of ranks may hang, and the agent must not.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "wire/status_msg.h"

struct inspector_rank {
        uint32_t rank;
        pid_t pid; /* of the worker; 0 = it has ended */
};

/* Writes an INSPECTED for each rank to @to, the last with .left 0. Ends early on SIGTERM, after all
 * tools are killed. */
void inspector_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                   int to);
