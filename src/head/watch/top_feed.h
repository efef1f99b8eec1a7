/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top feed: the activity of hosts and ranks, for `hnlaunch top` and the live line
 */
#pragma once

#include "head/watch/watchers.h"

extern const struct watcher top_feed_watcher;

/* A client of the run's socket watches: returns the first line, malloc'ed. The next ones go to
 * run_socket_tell_top(). */
char *top_feed_watch(const struct run_view *r);
void top_feed_rest(const struct run_view *r); /* no client watches any longer */
