/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace log: the traces of all nodes of a run, merged on the clock of the head
 *
 * Reads the file `trace` of the records: each piece (wire/trace/trace.h) stands between a line
 * "NUMBER NODE OFFSET ERROR BYTES" and a newline. NUMBER counts the requests, of which each node's
 * newest counts; OFFSET and ERROR, in microseconds, turn the node's clock into time since the start
 * of hnlaunch. Malformed pieces, and records of ranks of other nodes, are left out. Blocking, any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/status_msg.h"
#include "wire/trace/trace.h"

/* A record of a rank. Of TRACE_SAMPLE number is percent of a core, more the letter of the state.
 */
struct trace_event {
        int64_t us; /* since the start of hnlaunch */
        uint32_t rank;
        uint32_t key; /* of TRACE_OP: index of .keys */
        uint8_t kind; /* enum trace_kind */
        uint64_t number, more;
};

struct node_sample {
        int64_t us;
        int node;
        struct sample s;
};

struct trace_node {
        bool there;
        int64_t error_us; /* of the clock; more than TRACE_CLOCK_UNKNOWN: not known */
};

#define TRACE_CLOCK_UNKNOWN (INT64_C(3600) * 1000000)

struct trace_log {
        struct trace_event *v; /* in the order of time */
        size_t n, cap;
        struct node_sample *samples; /* in the order of time, for each node */
        size_t n_samples;
        struct trace_node *nodes;
        size_t n_nodes;
        char **keys; /* keys[0] is "" */
        size_t n_keys;
};

/* Where a rank runs, and how many there are of both. */
struct trace_places {
        const int *node_of; /* by rank */
        size_t n_ranks, n_nodes;
};

/* Reads the file @name in the folder @dir, which may be missing: then there are no events. -errno
 * with @err: the file is unreadable; *log is valid in any case. */
int trace_log_load(struct trace_log *log, int dir, const char *name,
                   const struct trace_places *places, struct error *err);
/* The same from memory. */
void trace_log_read(struct trace_log *log, const void *data, size_t len,
                    const struct trace_places *places);
/* Appends an event from another source; call trace_log_sort() after the last. */
void trace_log_add(struct trace_log *log, const struct trace_event *e);
void trace_log_sort(struct trace_log *log);
/* Drops the events of the time before @us. */
void trace_log_drop_before(struct trace_log *log, int64_t us);
void trace_log_finish(struct trace_log *log);

/* Whether an event is a request with a wait for other ranks. */
bool trace_event_waits(const struct trace_event *e);
