/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_store: the requests of libhnlaunch, carried to the TCPStore that torchrun's agent hosts
 *
 * Answers as hnlaunch's own store does, with what PyTorch's server has:
 *
 *   - Keys are hn/RUN_ID/WORLD_SIZE/ATTEMPT/..., for the agent's store outlives an attempt.
 *   - A value has at most TORCH_VALUE_MAX bytes: more closes the connection in new releases.
 *   - NUM_KEYS needs LIST_KEYS, which came with PyTorch 2.10; else HN_ERR_UNSUPPORTED.
 *   - ADD wraps around where hnlaunch's store refuses to overflow.
 *   - There are no news: nobody tells of a failed rank before torchrun stops this one.
 *   - ABORT and REPORT_ERROR write TORCHELASTIC_ERROR_FILE, which torchrun shows as the reason when
 *     this process ends badly. PROGRESS goes nowhere.
 *
 * A process has few connections: new servers ask the resolver for the name of each client, in their
 * only thread.
 */
#pragma once

#include "client/core/conn.h"

enum { TORCH_VALUE_MAX = 8 * 1000 * 1000 };

/* Who this process is, as torchrun says; lent. */
struct torch_job {
        const char *addr, *port, *run_id;
        const char *error_file; /* or NULL */
        int restart, rank, world_size, first_rank, local_world_size, node_rank, num_nodes;
};

/* A connection to the store of torchrun's agent; waits until the agent listens. HN_ERR_TIMEOUT,
 * HN_ERR_SYSTEM, HN_ERR_NOMEM. @job is lent until the return. */
hn_status torch_store_open(const struct torch_job *job, int64_t timeout_ms, struct conn **ret);
