/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run why: `hnlaunch why`
 *
 * Asks the run at its socket, prints the answer on standard output, and writes all stacks to a file
 * among the records of the run. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "head/run/run_list.h"

/* 0; else -errno as run_ask(). */
int run_why_ask(const struct run *r, bool json, struct error *err);
