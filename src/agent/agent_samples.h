/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agent_samples: what the node and its ranks do, every second while that is wanted
 *
 * `hnlaunch top` wants it while it looks; the node's trace gets it from 10 s after the start on, so
 * that a short run pays nothing for it.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "agent/agent_attempt.h"
#include "agent/agent_store.h"
#include "agent/core/uplink.h"
#include "agent/inspect/gpu_sampler.h"
#include "agent/inspect/sampler.h"
#include "agent/inspect/wait_looks.h"

struct agent_samples {
        struct uplink *up;
        const struct agent_attempt *attempt;
        const struct store_access *store;
        uv_timer_t timer;
        uv_timer_t look;           /* runs while the head wants samples */
        struct wait_count *counts; /* by place in the attempt's workers; NULL = no looks */
        size_t n_counts;
        struct sampler sampler;
        struct gpu_sampler gpus;
        uint32_t ordered_ms; /* between two samples for the head; 0 = it wants none */
        struct node_trace *trace;
        uint64_t recorded_ms; /* of the loop: when the trace is to get the next sample */
};

/* All pointers are borrowed. */
void agent_samples_init(struct agent_samples *s, uv_loop_t *loop, struct uplink *up,
                        const struct agent_attempt *attempt, const struct store_access *store,
                        struct node_trace *trace);
/* Ranks were started, or all have ended. */
void agent_samples_begin(struct agent_samples *s);
void agent_samples_end(struct agent_samples *s);
/* Takes SAMPLE of the head. */
void agent_samples_order(struct agent_samples *s, const struct frame *f);
void agent_samples_close(struct agent_samples *s); /* let the loop turn once more */
