/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm_env: the environment in which modules are imported before the ranks start
 */
#pragma once

#include <stdbool.h>

#include "agent/bind/order_binding.h"
#include "base/strv.h"
#include "wire/warm_msg.h"

/* Fills in @env for an order on a node with @cores. @node: as of the ranks. */
void warm_env_build(struct strv *env, const struct warm_order *m, struct binding_node *node,
                    unsigned cores, bool has_gpus);
