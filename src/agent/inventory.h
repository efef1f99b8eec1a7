/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inventory: hardware and addresses of this node
 *
 * Reads the kernel only: no name is resolved and no library is opened.
 */
#pragma once

#include "wire/msg.h"

/*
 * Fills @h but for free_port and mono_ns. Unknown facts stay 0 or "". Free with hello_finish().
 * GPUs: all of the NVIDIA driver with a device node, in the order of their PCI addresses, which is
 * the index of CUDA_DEVICE_ORDER=PCI_BUS_ID and nvidia-smi; when CUDA_VISIBLE_DEVICES is set in the
 * agent's own environment, only the GPUs named there.
 */
void inventory_take(struct hello *h);

/* Appends the GPUs that CUDA_VISIBLE_DEVICES=@visible leaves of @all, by CUDA's rules: a list of
 * indices or beginnings of UUIDs, which ends at the first other word. */
void inventory_choose_gpus(struct hello *to, const struct hello *all, const char *visible);
/* Counts the devices in a folder like /sys/class/infiniband; 0 = there is none. */
uint32_t inventory_count_devices(const char *folder);
/* Reads GPUs from a folder like /proc/driver/nvidia/gpus and device nodes named @nodes + minor. */
void inventory_read_gpus(struct hello *to, const char *folder, const char *nodes);
