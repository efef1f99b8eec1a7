/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: the run's socket for `hnlaunch ps`, `stop`, `why` and other commands
 */
#pragma once

#include "head/watch/run_view.h"

struct diags;

/* Sets .socket of a run after its job and its watchers were created. A failure is a warning. */
void requests_open(struct run_view *r, struct diags *d);
void requests_close(struct run_view *r); /* before watchers_close() */
