/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attach: the output of a run on this terminal, from the last place on, and input for the ranks
 *
 * The output is read from the records (head/run/output_file.h) and printed as the run itself would
 * (head/output/printer.h). The first of several attached commands owns the place of the next
 * command, the file "shown" of the records, and may give input. Main thread only.
 */
#pragma once

#include "head/options/options.h"
#include "head/run/run_list.h"

/* Attaches until the run ends or the user detaches. Returns the exit code: the code of the run,
 * 0 after a detachment by key, 128+N after signal N; errors are in @d. */
int attach_run(const struct options *o, const struct run *r, struct diags *d);
