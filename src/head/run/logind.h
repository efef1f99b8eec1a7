/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logind: whether systemd-logind ends the processes of a user who logs out
 *
 * Source: logind.conf(5), KillUserProcesses, KillOnlyUsers and KillExcludeUsers. Blocking; any
 * thread.
 */
#pragma once

#include <stdbool.h>

/* Whether this process belongs to a login session, and logind is told to end what is left of it. */
bool logind_ends_processes(void);
