/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inventory: hardware and addresses of this node
 *
 * Reads the kernel only: no name is resolved and no library is opened.
 */
#pragma once

#include "wire/env/gpu_list.h"
#include "wire/msg.h"

/*
 * Fills @h but for free_port and mono_ns. Unknown facts stay 0 or "". Free with hello_finish().
 * GPUs: all of the NVIDIA driver with a device node, in the order of their PCI addresses, which is
 * the index of CUDA_DEVICE_ORDER=PCI_BUS_ID and nvidia-smi, else those of AMD's, unless a variable
 * of HIP or ROCr has renumbered them; when CUDA_VISIBLE_DEVICES is set in the
 * agent's own environment, the GPUs named there, and apart from them the others.
 */
void inventory_take(struct hello *h);

/* Counts the devices in a folder like /sys/class/infiniband; 0 = there is none. */
uint32_t inventory_count_devices(const char *folder);
/* Returns the index of the GPU whose PCI address begins with @address; UINT32_MAX = there is none.
 * Folder and nodes as below. */
uint32_t inventory_find_gpu(const char *folder, const char *nodes, const char *address);
/* Reads AMD's GPUs from a folder like /sys/class/kfd/kfd/topology/nodes and device nodes named
 * @nodes + minor, in the order of HIP. */
void inventory_read_amd_gpus(struct gpu_list *to, const char *folder, const char *nodes);
/* Reads GPUs from a folder like /proc/driver/nvidia/gpus and device nodes named @nodes + minor. */
void inventory_read_gpus(struct gpu_list *to, const char *folder, const char *nodes);
