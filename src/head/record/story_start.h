/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Story start: the start of each attempt of a run
 *
 * A start is added when the next attempt takes its first node, and at the end of the events. Of
 * the first attempt all hosts are kept, for a picture; of the others the phases are enough.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct story;

/* A node with one host; another host may take its place. */
struct story_node {
        char *host;
        int node;
        size_t n_ranks; /* in the newest attempt */
        bool uploaded, failed, lost;
        bool replaced; /* another host is in its place */
        bool held;     /* a hold was asked for its agent */
        int64_t connected_us, ready_us, pushed_us;
        int64_t started_us, joined_us, ended_us; /* of the last rank there */
};

/* A step of the start, done with the last node or rank. */
struct story_phase {
        const char *name; /* "connect" or "hold", "join" ... */
        char letter;      /* 'C', 'J' ... */
        int64_t from_us, until_us;
        int node, rank;    /* the last; rank -1 = a node */
        char *host;        /* of the last */
        int64_t own_us;    /* duration there */
        int64_t median_us; /* duration elsewhere */
};

enum { STORY_PHASES = 5 };

struct story_start {
        int64_t from_us;    /* the end of the attempt before; 0 = of the first */
        int64_t ordered_us; /* the ranks were ordered to start; -1 = not known */
        struct story_phase phases[STORY_PHASES];
        size_t n_phases;
};

struct story_starts {
        struct story_start *v; /* by attempt, the newest last */
        size_t n, cap;
        struct story_start now;  /* the one that goes on, without phases */
        struct story_node *rows; /* of the first: each node with each host that it had */
        size_t n_rows, cap_rows;
};

/* A host that fails, or is lost, leaves its place to @host. */
void story_start_replace_host(struct story *s, struct story_node *n, const char *host);
/* Adds the start of the attempt, which has got all events. The next one starts at @us. */
void story_start_add(struct story *s, int64_t us);
/* Fills in what a node has from its ranks. */
void story_start_sum_ranks(const struct story *s, struct story_node *nodes);
void story_starts_finish(struct story_starts *a);

/* Returns the end of the last phase, at least 1. */
int64_t story_start_end(const struct story_start *a);
