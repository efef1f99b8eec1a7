/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair dialer: connects to the listening peers of an order, and measures the connections
 *
 * All peers at once: probe.h finds the address that answers. With bytes to send, another connection
 * there takes the shortest of MEASURE_ECHOES round trips, sends, and receives. What was measured
 * when the time is over counts. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/measure_msg.h"

struct pair_dialer;

/* Called once. @results are lent, in the order of the targets. The dialer is freed after the call.
 */
typedef void (*pair_dialer_done)(void *ctx, const struct measured_target *results, uint32_t n);

/* @order, with at least one target, is lent for the call. */
struct pair_dialer *pair_dialer_start(uv_loop_t *loop, const struct measure_order *order,
                                      pair_dialer_done done, void *ctx);
/* Gives up; done() is not called. The memory is freed by close callbacks. NULL is fine. */
void pair_dialer_cancel(struct pair_dialer *d);
