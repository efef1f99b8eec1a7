/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run commands: ps, stop, signal, wait, logs, why and rerun
 *
 * Each speaks to the socket of a run or reads the records (head/run/run_list.h). Main thread only.
 */
#pragma once

#include "head/options/options.h"

/* Carries out o->command. Returns the exit code; messages are in @d. rerun does not return unless
 * it fails. */
int run_commands_do(const struct options *o, struct diags *d);
