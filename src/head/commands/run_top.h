/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run top: `hnlaunch top`
 *
 * Watches a run through the socket: on the whole terminal, with --json as lines, and
 * without a terminal as one table. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "head/options/options.h"
#include "head/run/run_list.h"
#include "head/term/diag.h"

/* 0: all was shown, and @d has the verdict of a run that ended meanwhile. A signal: top was asked
 * to end by the signal. Else -errno as run_ask(). */
int run_top_show(const struct options *o, const struct run *r, struct diags *d, struct error *err);
