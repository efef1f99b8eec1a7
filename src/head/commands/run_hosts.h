/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run hosts: `hnlaunch hosts` without --probe, lists of hosts folded or one a line
 */
#pragma once

#include "head/options/options.h"
#include "head/term/diag.h"

/* Prints the hosts. Returns the exit code; an error of stdout is told by the caller. */
int run_hosts_print(const struct options *o, struct diags *d);
