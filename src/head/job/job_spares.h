/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job spares: other hosts in place of nodes that fail before the ranks start
 *
 * A host that stands by unconnected takes the place of a node in the list of hosts, and the node is
 * connected anew. The caller chooses the hosts. In job.c. Main loop's thread only.
 */
#pragma once

#include "head/job/job.h"

/* Called with say_ctx of the configuration for a node that has failed while nodes are being
 * connected, or between two attempts. True: another host has taken the place of the node in the
 * list of hosts, and the node shall be connected. */
typedef bool job_stand_in(void *ctx, size_t node);

/* Before job_connect(). */
void job_use_spares(struct job *j, job_stand_in *stand_in);
/* Fails a READY node, for the reason @why. */
void job_give_up(struct job *j, size_t node, const char *why);
/* Begins to connect a FAILED node once more. */
void job_connect_anew(struct job *j, size_t node);
/* Connects nodes directly whose parent in the tree has failed. Returns how many. */
size_t job_adopt_orphans(struct job *j);
/* Counts the hosts that could take the place of a node in another attempt: connected ones, and
 * those that stand by. */
size_t job_spares(const struct job *j);
/* Waits until no node is being connected. JOB_DONE or JOB_INTERRUPTED. */
enum job_step job_await_nodes(struct job *j);
