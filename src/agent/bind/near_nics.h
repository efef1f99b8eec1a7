/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near_nics: the ports of InfiniBand and RoCE nearest to the GPUs of each rank (--nic near)
 *
 * The nearest port is behind the same PCI switch, else below the same host bridge, else on the same
 * NUMA node. A port of another NUMA node is not near.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "wire/bind_msg.h"

struct near_nics {
        struct strv ports; /* by place in bind_query.ranks: "mlx5_0:1,mlx5_1:1"; "" = none */
        bool has_active;   /* the node has an active port */
};

/* Finds the ports of the ranks of @q below @sys (/sys), nothing without q->near_nic. @gpus: PCI
 * addresses by index. Ports that are equally near are all listed, and ranks with the same ports
 * begin with different ones. */
void near_nics_find(struct near_nics *n, const struct bind_query *q, const struct strv *gpus,
                    const char *sys);
/* Logs the ports of each rank; warns if ranks with GPUs have none because none is active, and
 * @warned is false, which is then set. */
void near_nics_tell(const struct near_nics *n, const struct bind_query *q, bool *warned);
/* Adds the variables of NCCL and UCX for the rank at place @i, but none that @env has. */
void near_nics_add_env(const struct near_nics *n, uint32_t i, struct strv *env);
void near_nics_finish(struct near_nics *n);
