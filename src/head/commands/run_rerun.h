/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run rerun: `hnlaunch rerun`, the command line of a run once more
 */
#pragma once

#include "head/options/options.h"
#include "head/run/run_list.h"
#include "head/term/diag.h"

/* Becomes a hnlaunch with the recorded line of @r and the options of rerun. Returns after an error
 * only: the exit code, with a message in @d. */
int run_rerun_start(const struct options *o, const struct run *r, struct diags *d);
