/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top state: the activity of each host and rank of a run, as a line of JSON for `hnlaunch top`
 *
 * Takes the life of ranks from the rank board and, while a client watches, the samples of the
 * nodes, and asks its source for the rest. Names and units of the JSON are a promise
 * (hnlaunch-top(1)). Pure, main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "head/hosts/hosts.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"

struct sample;

struct top_node {
        const char *state; /* "connecting", "ready", "running", "ended", "lost" */
        uint64_t memory;   /* bytes of RAM, 0 = unknown */
        int64_t silent_ms; /* 0 = not silent */
};

struct top_source {
        const char *run_id;
        struct events *events;
        struct rank_board *ranks;
        const struct hosts *hosts;
        const char *(*doing)(void *ctx); /* "running", "stopping" */
        int64_t (*hang_ms)(void *ctx);   /* of a known hang; 0 = none */
        /* The cause of that hang, and its rank, -1 = several; NULL = not known. */
        const char *(*hang_cause)(void *ctx, int *ret_rank);
        /* The roles that wait, as job_describe_waits(). */
        json_t *(*waits)(void *ctx);
        struct top_node (*node)(void *ctx, size_t host);
        void *ctx;
};

struct top_state;

/* All pointers are borrowed, and must live as long as the event stream. */
struct top_state *top_state_create(const struct top_source *s);
/* Takes over the arrays of a sample of @node; the sample has ranks of that node only. */
void top_state_take(struct top_state *t, int node, struct sample *m);
/* Forgets all samples: no more will come for some time. */
void top_state_forget(struct top_state *t);
/* Appends a line of JSON, with the newline. @loop_ms is that of rank_board_rate(). */
void top_state_json(const struct top_state *t, uint64_t loop_ms, struct buf *to);
/* After the last event. NULL is fine. */
void top_state_destroy(struct top_state *t);
