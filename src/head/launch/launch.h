/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch: a launch from the options to the exit code
 *
 * Each function takes over the options and the messages of their reading, prints every message,
 * closes standard output and returns the exit code. Main thread only.
 */
#pragma once

struct diags;
struct options;

/* Launches, or shows the plan of a launch. *ret_signal is the signal that has ended it, 0 = none;
 * the caller shall die of it. */
int launch_run(struct options *o, struct diags *d, int *ret_signal);
/* Ends a launch that cannot begin: @d has errors. The exit code is that of the first error; @code,
 * if it has none. */
int launch_refuse(struct options *o, struct diags *d, int code);
