/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nccl pair: one of the two helpers that measure the GPUs of two nodes (src/carried/nccl/main.c)
 *
 * Both helpers get the connection between the nodes. The first measures and reports to the agent.
 * Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/helper/nccl_record.h"
#include "wire/measure_msg.h"

struct nccl_pair;

/* Called once. The pair is freed after the call. */
typedef void (*nccl_pair_done)(void *ctx, const struct nccl_record *r);

/* Starts the first helper with the connection, which stays open here. @how is lent for the call.
 * NULL with @err. */
struct nccl_pair *nccl_pair_start(uv_loop_t *loop, const uv_tcp_t *to,
                                  const struct measure_nccl *how, nccl_pair_done done, void *ctx,
                                  struct error *err);
/* Waits no longer; done() is not called. The memory is freed by close callbacks. NULL is fine. */
void nccl_pair_cancel(struct nccl_pair *p);

/* Starts the second helper, which ends with the first. */
void nccl_pair_serve(const uv_tcp_t *to, const struct measure_nccl *how);
