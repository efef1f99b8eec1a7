/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair dialer: connects to the listening peers of an order, and measures the connections
 *
 * All peers at once: probe.h finds the address that answers. With bytes to send, another connection
 * there takes the shortest of MEASURE_ECHOES round trips, sends, and receives. At the end of the
 * time the measurements so far count. With NCCL a helper gets the connection (nccl_pair.h), and
 * measures the GPUs. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/measure_msg.h"

struct pair_dialer;

/* Called once. @results are lent, in the order of the targets; @why NCCL has failed, "" = no
 * failure. The dialer is freed after the call. */
typedef void (*pair_dialer_done)(void *ctx, const struct measured_target *results, uint32_t n,
                                 const char *why);

/* @order, with at least one target, is lent for the call. @nccl is borrowed; NULL = TCP is
 * measured. */
struct pair_dialer *pair_dialer_start(uv_loop_t *loop, const struct measure_order *order,
                                      const struct measure_nccl *nccl, pair_dialer_done done,
                                      void *ctx);
/* Gives up; done() is not called. The memory is freed by close callbacks. NULL is fine. */
void pair_dialer_cancel(struct pair_dialer *d);
