/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics feed: serves the metrics of the run (--metrics)
 */
#pragma once

#include "head/watch/watchers.h"

extern const struct watcher metrics_feed_watcher;
