/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the nodes by domain and switch, and segments within a domain (--order topology,
 * --segment, --topology). Without these options nothing is read or asked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct launch;

/* Whether the order of the hosts is not that of the list. */
bool launch_order_is_wanted(const struct launch *l);
/* Counts the hosts from the first on that the plan needs, as far as slots are known; 0 = all. */
size_t launch_order_count(const struct launch *l);
/* Orders the hosts by the topology file, and by name: first those that the job needs, from @needed
 * hosts on, 0 = all. Before hosts are put aside. 0, or -EINVAL with errors in diags. */
int launch_order_arrange(struct launch *l, size_t needed);
/* Whether the hosts that the job needs are only chosen when the nodes have told their domains. */
bool launch_order_waits(const struct launch *l);
/* Asks the nodes for their domains, and chooses and orders them before the first plan. Returns 0,
 * or the exit code. */
int launch_order_settle(struct launch *l);
/* Whether that was done. */
bool launch_order_is_settled(const struct launch *l);
/* Refuses a plan with a segment that is not within a domain; with @again warns. Returns 0, or the
 * exit code. */
int launch_order_check(struct launch *l, bool again);
