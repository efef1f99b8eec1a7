/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: what the head knows of a run, in the text format 0.0.4 of Prometheus
 *
 * Listens to the event stream and is told of output; no node is asked. Counters of bytes go on over
 * restarts, steps and states of ranks begin anew. Pure, main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"

enum metrics_state {
        METRICS_CONNECTING,
        METRICS_READY,   /* no rank runs there */
        METRICS_RUNNING, /* ranks run, or have been ordered */
        METRICS_ENDED,   /* nothing of the attempt is left there */
        METRICS_LOST,    /* or not reached */
        METRICS_STATES,
};

/* What a caller knows of a host's node. */
struct metrics_node {
        enum metrics_state state;
        int64_t heard_us; /* since the start of hnlaunch; below 0 = never */
};

struct metrics_source {
        const char *run_id, *version;
        int64_t start_us; /* of hnlaunch, since 1970 */
        struct events *events;
        const struct rank_board *ranks;
        const struct hosts *hosts;
        struct metrics_node (*node)(void *ctx, size_t host);
        /* Writes why the attempt fails, as far as is known; false: it does not. NULL = unknown. */
        bool (*reason)(void *ctx, char *to, size_t size);
        void *ctx;
};

struct metrics;

/* All pointers are borrowed, and must live as long as the event stream. */
struct metrics *metrics_create(const struct metrics_source *s);
/* Appends the text. */
void metrics_text(const struct metrics *m, struct buf *to);
/* After the last event. NULL is fine. */
void metrics_destroy(struct metrics *m);
