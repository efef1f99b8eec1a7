/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gpu_check: the driver of the GPUs, their errors, and processes on the GPUs
 */
#pragma once

#include "wire/check_msg.h"
#include "wire/helper/gpu_record.h"

/* Adds the facts; the driver is asked for some seconds at most. The version is read below @root,
 * "" = the machine's own. */
void gpu_check(struct checked *m, const char *root);

/* Adds the answer of the driver. @named: process numbers are valid here. @root: as above. */
void gpu_check_holders(struct checked *m, const struct gpu_holders *h, bool named,
                       const char *root);
