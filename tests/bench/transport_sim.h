/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport_sim: links over descriptors that are there already
 *
 * Link after link gets the next of them. As with ssh a link tells its phases, opens in a later turn
 * of the loop, and only some of them are on the way at once.
 */
#pragma once

#include <stdint.h>

#include "head/nodes/transport.h"

/* @fds, @n of them, becomes the transport's. Opening more links than that is an error. */
struct transport *transport_sim_create(uv_loop_t *loop, int *fds, uint32_t n);
