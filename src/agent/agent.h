/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent: carries out the head's orders on one node
 *
 * Sends HELLO, starts ranks, forwards their output, watches the ranks, and proves the end of all
 * processes of the job. The agent ends by itself: after BYE when nothing runs any more, and after
 * the loss of the head or a signal when everything has been stopped. One job at a time, one
 * attempt after the other. Call everything on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "base/error.h"

struct agent;
struct guard_notes;

/* Creates the agent. @in_fd and @out_fd lead to the head and are borrowed until agent_destroy(), as
 * is @notes, which may be NULL. Makes the process a subreaper and watches SIGCHLD: any child of the
 * process counts as the job's. uv_stop() is called on @loop when the agent ends. NULL on failure,
 * with @err. */
struct agent *agent_create(uv_loop_t *loop, int in_fd, int out_fd, struct guard_notes *notes,
                           struct error *err);
/* Turns the loop once more to close the agent's handles. Removes the job's folder. NULL is fine. */
void agent_destroy(struct agent *a);

/* A signal came from the node. While ranks run the head is told, which stops them with the grace
 * time of the job: with a manager (HNLAUNCH_MANAGED) it decides for all nodes, else the agent
 * leaves when they have ended. The head may also drain the node, and orders SIGNAL then: the ranks
 * and the agent go on. Without ranks the agent quits. */
void agent_signalled(struct agent *a, int signo);
