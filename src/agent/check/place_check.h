/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place_check: the place of the node in the network: NVLink domain and switches
 *
 * The facts: gpu.domain, "CLUSTER.CLIQUE" or "none"; switch.path, "CORE/LEAF" or "none".
 */
#pragma once

#include <stdbool.h>

#include "wire/check_msg.h"
#include "wire/helper/gpu_record.h"

/* Adds the facts. The driver, if any, is queried for some seconds at most. */
void place_check(struct checked *m);

/* Whether GPUs of other nodes may be reached through the fabric of the GPU. */
bool place_check_has_domain(const struct gpu_fabric *f);
/* Adds the domain reported by the driver. */
void place_check_domain(struct checked *m, const struct gpu_holders *h);
/* Adds the switches in Slurm's SLURM_TOPOLOGY_ADDR ("core.leaf1.node007") and
 * SLURM_TOPOLOGY_ADDR_PATTERN ("switch.switch.node"); NULL = not set. */
void place_check_switches(struct checked *m, const char *addr, const char *pattern);
