/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch_spares: hosts in place of nodes that fail before the ranks start (--spares), and a start
 * with fewer nodes (--nodes MIN:MAX, --min-nodes)
 *
 * Without these options nothing here does anything. Each replacement is told in one line, and as
 * the event node.replaced. Main thread only.
 */
#pragma once

#include <stdbool.h>

struct launch;

/* Divides the hosts into those that run and those that stand by, and leaves bad hosts out. Errors
 * are in diags. */
void launch_spares_choose(struct launch *l);
/* Lets the job replace nodes that fail while nodes are connected. After job_create(). */
void launch_spares_watch(struct launch *l);
/* Replaces nodes that have failed, or leaves them out. 0: all nodes that are to run are READY.
 * JOB_INTERRUPTED. -EHOSTUNREACH: there are too few. */
int launch_spares_settle(struct launch *l);
/* The same for nodes with slots or GPUs that do not fit, unless all nodes have that fault. Returns
 * 0, also when nodes with the fault are left, or the exit code. */
int launch_spares_fit(struct launch *l);
/* The same for nodes that are the reason for *@rc of job_push(), or, with @pushed, of
 * job_open_endpoint(). True: to be tried again, with another plan. False: *@rc ends the launch. */
bool launch_spares_prepare(struct launch *l, int *rc, bool pushed);
/* The same after the first attempt for nodes where the program could not be started. True: the job
 * is ready for another attempt. */
bool launch_spares_refused(struct launch *l);
/* Notes at the last error how many spare hosts answered, and how to leave out all that failed;
 * without spare hosts, which options would replace failed nodes. */
void launch_spares_note(struct launch *l);
