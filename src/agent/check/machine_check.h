/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine_check: limits, quotas, memory file systems, kernel and InfiniBand of this machine
 */
#pragma once

#include "wire/check_msg.h"

/* Adds the facts. Files of the kernel, /dev/shm and /tmp are read below @root, "" = the machine's
 * own. */
void machine_check(struct checked *m, const char *root);
