/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logind: whether systemd-logind ends a user's processes at logout
 *
 * Source: logind.conf(5), KillUserProcesses, KillOnlyUsers and KillExcludeUsers. Blocking; any
 * thread.
 */
#pragma once

#include <stdbool.h>

/* Whether this process belongs to a login session, and logind ends a session's processes at
 * logout. */
bool logind_ends_processes(void);
