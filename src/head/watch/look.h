/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look: the evidence for `hnlaunch why`
 */
#pragma once

#include "head/watch/watchers.h"

extern const struct watcher look_watcher;

/* Begins a look for the rank that keeps the others waiting, unless a look goes on. Clients of the
 * run's socket get the answer. */
void look_begin(const struct run_view *r);
