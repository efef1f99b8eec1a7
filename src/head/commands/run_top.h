/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run top: `hnlaunch top`
 *
 * Looks on at the socket of a run: on the whole terminal, with --json as the lines that come, and
 * without a terminal as one table. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "head/options/options.h"
#include "head/run/run_list.h"
#include "head/term/diag.h"

/* 0: all was shown, and if the run has ended meanwhile its verdict is in @d. A signal: top was
 * asked to end by it. Else -errno as run_ask(). */
int run_top_show(const struct options *o, const struct run *r, struct diags *d, struct error *err);
