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

/* Launches, or shows the plan of a launch. If a signal has ended the launch, *ret_signal is its
 * number, else 0; the caller must then die of the same signal. */
int launch_run(struct options *o, struct diags *d, int *ret_signal);
/* Ends a launch that cannot begin because of the errors in @d. Returns the exit code of the first
 * error; @code, if the error has none. */
int launch_refuse(struct options *o, struct diags *d, int code);
