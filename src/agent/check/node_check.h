/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node_check: answers a CHECK (`hnlaunch check`), in a separate process
 *
 * A file system or a driver may hang, and the agent must not. Facts go out in four CHECKEDs: of
 * the machine, of the GPUs, of files, and of commands.
 */
#pragma once

#include "wire/check_msg.h"

/* Writes the answers to @order, a struct check_order, to the descriptor @to. */
void node_check_run(const void *order, int to);
