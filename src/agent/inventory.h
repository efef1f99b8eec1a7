/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inventory: what this node has
 *
 * Reads the kernel only: no name is resolved and no library is opened.
 */
#pragma once

#include "wire/msg.h"

/*
 * Fills @h but for free_port and mono_ns. Facts that cannot be had stay 0 or "". hello_finish()
 * frees it. GPUs are those of the NVIDIA driver that have a device node, in the order of their PCI
 * addresses, which is the index that CUDA_DEVICE_ORDER=PCI_BUS_ID and nvidia-smi use; when
 * CUDA_VISIBLE_DEVICES is set in the agent's own environment, only those that it names.
 */
void inventory_take(struct hello *h);

/* Appends the GPUs that CUDA_VISIBLE_DEVICES=@visible leaves of @all, as CUDA reads it: indices or
 * UUIDs that begin so, ending at the first that is neither. */
void inventory_choose_gpus(struct hello *to, const struct hello *all, const char *visible);
/* Reads GPUs from a folder like /proc/driver/nvidia/gpus and device nodes named @nodes + minor. */
void inventory_read_gpus(struct hello *to, const char *folder, const char *nodes);
