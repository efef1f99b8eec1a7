/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_preflight: whether the nodes are fit, before the ranks start (--preflight)
 *
 * Each host is asked once: those of the first plan before the first attempt, others when they take
 * a place. Without the option nothing here does anything. Main thread only.
 */
#pragma once

#include <stdbool.h>

struct launch;

/* Asks the hosts of the plan, replaces those that are not fit as --on-bad-node says, and plans
 * again. Tells warnings once. Returns 0, or the exit code. */
int launch_preflight(struct launch *l);
/* Asks hosts that have taken a place for another attempt, and fails the nodes that are not fit. An
 * order to end ends it. */
void launch_preflight_joined(struct launch *l);
void launch_preflight_free(struct launch *l);
