/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Torch_store: the requests of libhnlaunch, translated for the TCPStore of torchrun's agent
 *
 * Answers like hnlaunch's own store, as far as PyTorch's server allows:
 *
 *   - Keys are hn/RUN_ID/WORLD_SIZE/ATTEMPT/..., because the agent's store outlives an attempt.
 *   - A value has at most TORCH_VALUE_MAX bytes: more closes the connection in new releases.
 *   - NUM_KEYS needs LIST_KEYS, added in PyTorch 2.10; else HN_ERR_UNSUPPORTED.
 *   - ADD wraps around where hnlaunch's store refuses to overflow.
 *   - There are no news: this rank learns of a failed rank only when torchrun stops it.
 *   - ABORT and REPORT_ERROR write TORCHELASTIC_ERROR_FILE, which torchrun shows as the reason when
 *     this process fails. PROGRESS is dropped.
 *
 * A process has few connections: new servers ask the resolver for the name of each client, in their
 * only thread.
 */
#pragma once

#include "client/core/conn.h"

enum { TORCH_VALUE_MAX = 8 * 1000 * 1000 };

/* The identity of this process, from torchrun's variables; lent. */
struct torch_job {
        const char *addr, *port, *run_id;
        const char *error_file; /* or NULL */
        int restart;
        uint32_t rank, world_size, first_rank, local_world_size, node_rank, num_nodes;
};

/* Connects to the store of torchrun's agent; waits until the agent listens. HN_ERR_TIMEOUT,
 * HN_ERR_SYSTEM, HN_ERR_NOMEM. @job is lent until the return. */
hn_status torch_store_open(const struct torch_job *job, int64_t timeout_ms, struct conn **ret);
