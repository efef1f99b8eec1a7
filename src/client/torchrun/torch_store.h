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

struct torch_store;

hn_status torch_store_open(const struct torch_job *job, int64_t timeout_ms,
                           struct torch_store **ret);
void torch_store_close(struct torch_store *s); /* NULL is fine */

/* As conn_call() and conn_post(). */
hn_status torch_store_call(struct torch_store *s, const struct store_request *req,
                           int64_t timeout_ms, struct answer *ret);
hn_status torch_store_post(struct torch_store *s, const struct store_request *req);
