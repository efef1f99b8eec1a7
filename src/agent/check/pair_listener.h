/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair listener: an open port for the peers of a test (`hnlaunch check`)
 *
 * Who says ENDPOINT_PROBE and the first half of the token gets the second half; then
 * MEASURE_ECHOES bytes come back one by one, all further bytes are dropped up to their end, and
 * bytes are sent as the order says. With NCCL a helper gets the connection (nccl_pair.h). Any other
 * connection is closed. Nothing that a peer sends is interpreted. The port is closed LISTEN_MS
 * after the last order. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "wire/measure_msg.h"

struct pair_listener;

/* Opens a port on all addresses. @nccl is borrowed, and may change between orders. NULL with
 * @err. */
struct pair_listener *pair_listener_open(uv_loop_t *loop, const struct measure_nccl *nccl,
                                         struct error *err);
uint32_t pair_listener_port(const struct pair_listener *l); /* 0 = it was closed by the time */
/* Takes the token and, unless it is nothing, what to send from @order, and waits for peers once
 * more LISTEN_MS. */
void pair_listener_renew(struct pair_listener *l, const struct measure_order *order);
/* Closes the port and all connections. The memory is freed by close callbacks. NULL is fine. */
void pair_listener_close(struct pair_listener *l);
