/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Story: a run as told by the records, from the first connection to the verdict
 *
 * Read from run.json, events.ndjson, summary.json, hang.txt and trace in the run's folder; each may
 * be missing or cut, as in a running or killed run. Of a run with restarts the newest
 * attempt is told, and the start of each. All times are microseconds since the start of hnlaunch;
 * -1 = not known, or never. Blocking, any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "head/model/role_list.h"
#include "head/record/divergence.h"
#include "head/record/slow_node.h"
#include "head/record/story_start.h"
#include "head/record/trace_log.h"

struct story_rank {
        int64_t started_us, joined_us, exited_us;
        int code, signal; /* valid when exited_us is known */
        bool waited;      /* its role is --after others */
};

/* An event in words. */
struct story_note {
        int64_t us;
        const char *what; /* name of the event, lent by .events */
        const char *text; /* lent, may be "" */
        const char *host; /* lent, as the event names it, may be "" */
        int node, rank;   /* -1 = none */
};

struct story_times {
        int64_t ordered_us;   /* run.start of the first attempt */
        int64_t restarted_us; /* the newest run.restart */
        int64_t stop_us, end_us;
        int64_t failed_us; /* of the first failure, or the order to stop */
};

/* A node or rank slower than the others. Of a rank of which only samples tell, steps is 0. */
struct story_slow {
        struct slow_node node, rank; /* rank.node is the rank */
};

struct story {
        json_t *run, *summary; /* never NULL; the objects may be empty */
        json_t *events;        /* an array */
        char *why;             /* what was found when the ranks were looked at; NULL = no look */
        json_t *failures;      /* those of .summary that say something, the cause first */
        struct story_node *nodes;
        struct story_rank *ranks;
        int *node_of; /* by rank */
        size_t n_nodes, n_ranks;
        struct role_list roles;
        struct story_starts starts;
        struct story_note *notes;
        size_t n_notes;
        struct story_times times;
        int cause_rank, restarts;
        struct trace_log log;
        struct divergence divergence;
        struct story_slow slow;
};

/* Reads the records of the run @id. -errno with @err: the records are missing or unreadable; *s
 * needs story_finish() in any case. */
int story_load(struct story *s, const char *id, struct error *err);
void story_finish(struct story *s);

/* Whether @n is the hang of the sentence `why`, or the loss of which the verdict tells. */
bool story_is_told(const struct story *s, const struct story_note *n);
/* Returns when an element of .failures happened. */
int64_t story_failure_us(const json_t *f);
/* Returns what a failure says, without the name that its rank gives itself. */
const char *story_failure_words(const json_t *f);
/* Returns whether the first failure is the cause, and the verdict says all of it. */
bool story_verdict_has_first(const struct story *s);
/* Returns the host of a node or of a rank; "" if unknown. */
const char *story_host(const struct story *s, int node, int rank);
/* Returns whether a rank has left the others before the failure, or a rank other than the cause. */
bool story_diverged_before(const struct story *s);
/* Returns the end of the times worth showing. */
int64_t story_last_us(const struct story *s);
