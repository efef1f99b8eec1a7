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

#include "head/job/job.h"

struct launch;

/* Divides the hosts into running and spare hosts, and leaves bad hosts out. Errors are in diags. */
void launch_spares_choose(struct launch *l);
/* Orders the hosts, and takes the first --nodes N, of a launch that replaces none. */
void launch_spares_order(struct launch *l);
/* Lets the job replace nodes that fail while nodes are connected. After job_create(). */
void launch_spares_watch(struct launch *l);
/* Replaces failed nodes, or leaves them out. JOB_DONE: all nodes of the plan are READY.
 * JOB_INTERRUPTED. JOB_NODES_LOST: too few nodes. */
enum job_step launch_spares_settle(struct launch *l);
/* The same for nodes with unfit slots or GPUs, unless all nodes have the same fault. Returns 0,
 * even with faulty nodes left, or the exit code. */
int launch_spares_fit(struct launch *l);
/* The same for the nodes that caused *@step of job_push(), or, with @pushed, of
 * job_open_endpoint(). True = try again with another plan. False = *@step ends the launch. */
bool launch_spares_prepare(struct launch *l, enum job_step *step, bool pushed);
/* The same for nodes that are not fit, why[i] != NULL by host, after all nodes were asked: nodes
 * with ranks are replaced by fit ones, or with @drop left out; the others are not used.
 * JOB_DONE: plan again. JOB_NODES_UNFIT: too few hosts, or @none_replaced. JOB_NODES_LOST,
 * JOB_INTERRUPTED. */
enum job_step launch_spares_put_out(struct launch *l, char **why, bool drop, bool none_replaced);
/* The same after the first attempt for nodes where the program could not be started. True: the job
 * is ready for another attempt. */
bool launch_spares_refused(struct launch *l);
/* Notes at the last error how many spare hosts answered, and how to leave out all failed nodes;
 * without spare hosts, the options to replace failed nodes. */
void launch_spares_note(struct launch *l);
