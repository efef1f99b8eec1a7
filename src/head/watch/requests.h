/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: what `hnlaunch ps`, `stop`, `why` and other commands ask of a run at its socket
 */
#pragma once

#include "head/watch/run_view.h"

struct diags;

/* Sets .socket of a run whose job there is and whose watchers have been created. A failure is a
 * warning. */
void requests_open(struct run_view *r, struct diags *d);
void requests_close(struct run_view *r); /* before watchers_close() */
