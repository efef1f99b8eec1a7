/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_inspect: INSPECT, a closer look at ranks that may hang
 */
#pragma once

#include "agent/agent_attempt.h"

/* Obeys the INSPECT @f; the answers follow. */
void agent_inspect(struct agent_attempt *t, const struct inspector_paths *paths,
                   const struct frame *f);
