/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run logs: the recorded output of a run, in the order of arrival (hnlaunch logs)
 *
 * Reads the file "output" of the records (head/run/recorder.h). Main thread only.
 */
#pragma once

#include "head/options/options.h"
#include "head/run/run_list.h"

/* Prints the lines chosen by @o to stdout; with --follow until the run has ended. Returns the
 * exit code; errors are in @d. */
int run_logs_print(const struct options *o, const struct run *r, struct diags *d);
