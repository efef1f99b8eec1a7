/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair listener: an open port for the peers of a test (`hnlaunch check`)
 *
 * A peer that sends ENDPOINT_PROBE and the first half of the token gets the second half. Then
 * MEASURE_ECHOES bytes come back one by one, all further bytes are dropped up to their end, and
 * bytes are sent as ordered. With NCCL a helper gets the connection (nccl_pair.h). Any other
 * connection is closed. No further byte of a peer is interpreted. The port is closed LISTEN_MS
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
uint32_t pair_listener_port(const struct pair_listener *l); /* 0 = closed when the time was over */
/* Takes the token of @order, and the bytes and the time of sending unless 0 bytes, and waits for
 * peers for LISTEN_MS from now on. */
void pair_listener_renew(struct pair_listener *l, const struct measure_order *order);
/* Closes the port and all connections. The memory is freed by close callbacks. NULL is fine. */
void pair_listener_close(struct pair_listener *l);
