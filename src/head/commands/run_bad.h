/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run bad: `hnlaunch bad`, the hosts that runs have put out
 */
#pragma once

#include "head/options/options.h"
#include "head/term/diag.h"

/* Lists the hosts, or takes one back. Returns the exit code; an error of stdout is told by the
 * caller. */
int run_bad_do(const struct options *o, struct diags *d);
