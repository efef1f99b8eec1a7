/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leftovers: processes and folders of runs of this user without an agent
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/check_msg.h"

void leftovers_check(struct checked *m);

/* Whether an agent, or any other process, answers at the socket. False only if no process certainly
 * does. */
bool leftovers_is_served(const char *socket);
/* Counts the folders below @folder that are left of jobs without an agent. */
size_t leftovers_count_folders(const char *folder);
