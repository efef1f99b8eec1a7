/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_status: a snapshot of the ranks and of their waits, for a job that hangs
 */
#pragma once

#include "agent/agent_attempt.h"
#include "agent/agent_store.h"

/* Answers the STATUS_REQUEST @f with a STATUS. Reads /proc, which takes some milliseconds. */
void agent_status_send(struct uplink *up, const struct agent_attempt *t,
                       const struct store_access *s, const struct frame *f);
