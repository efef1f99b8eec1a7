/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Step feed: steps printed by ranks, for the job (--progress-re)
 */
#pragma once

#include <stdbool.h>

#include "head/watch/watchers.h"

extern const struct watcher step_feed_watcher;

/* Whether the last attempt had lines, and none of them a step. */
bool step_feed_missed(const struct run_view *r);
