/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run ps: `hnlaunch ps`, the list of runs
 */
#pragma once

#include "head/options/options.h"
#include "head/run/run_list.h"
#include "head/term/diag.h"

/* Returns the state in words, "running" or "failed (7)"; malloc'ed. */
char *run_state_text(const struct run *r);
/* Returns program and arguments; malloc'ed. */
char *run_program_text(const struct run *r);

/* Prints the running runs and the last ended runs, with --watch again and again. Returns 0; an
 * error of stdout is told by the caller. */
int run_ps_print(const struct options *o, struct diags *d);
