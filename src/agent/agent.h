/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent: carries out the head's orders on one node
 *
 * Greets with HELLO, then starts ranks, carries their output home, watches them, and makes sure
 * that nothing of the job stays behind. It leaves by itself: after BYE when nothing runs any more,
 * or when the head is lost or agent_quit() was called, once everything has been stopped.
 * One job at a time, one attempt after the other. Everything happens on the loop's thread.
 */
#pragma once

#include <uv.h>

#include "base/error.h"

struct agent;
struct guard_notes;

/* @in_fd and @out_fd join it to the head and are borrowed until agent_destroy(); @notes too, which
 * may be NULL. Makes the process a subreaper and watches SIGCHLD: any child of the process counts
 * as the job's. uv_stop() is called on @loop when the agent has left. NULL: failed and told in
 * @err. */
struct agent *agent_create(uv_loop_t *loop, int in_fd, int out_fd, struct guard_notes *notes,
                           struct error *err);
/* Turns the loop once more to close its handles. Removes the job's folder. NULL is fine. */
void agent_destroy(struct agent *a);

/* Stops everything with a short grace and leaves; the head is told @why. */
void agent_quit(struct agent *a, const char *why);
