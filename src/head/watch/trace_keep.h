/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace keep: the agents' records of their ranks, for the records of the run
 *
 * The traces are fetched at the end of a failed run, or with --trace.
 */
#pragma once

#include "head/watch/watchers.h"

extern const struct watcher trace_keep_watcher;
