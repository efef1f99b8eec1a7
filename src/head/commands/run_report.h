/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run report: `hnlaunch report`, the story of a run from the records
 */
#pragma once

#include "head/options/options.h"
#include "head/run/run_list.h"
#include "head/term/diag.h"

/* Prints the report of @r, or writes the page of --html. 0, or the exit code with a message. */
int run_report_print(const struct options *o, const struct run *r, struct diags *d);
