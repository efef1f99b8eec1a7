/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence_private: groups of members and their operations, shared by the files of the fence
 *
 *   fence.c         operations: requests, answers
 *   fence_groups.c  groups: their members, and the nodes of these
 */
#pragma once

#include "agent/pmi/fence.h"

enum { FENCE_NAME_SIZE = 48 };

enum fence_step { STEP_WAITING, STEP_MEETING, STEP_FETCHING };

struct fence_op {
        struct fence_op *prev, *next;
        struct fence_waiter waiter;
        bool meets; /* a fence, not only a fetch */
        enum fence_step step;
        void *value;
        size_t len;
        uint32_t set_tag, tag; /* of the SET and of the request of the step; 0 = none */
        uint32_t n_missing;    /* local ranks without an answer to the barrier */
        enum store_status status;
        char *text;         /* of a failure */
        uint32_t n_keys;    /* being fetched */
        uint32_t fetch_max; /* keys of a request; fewer after an answer above the limit */
};

struct fence_group {
        struct fence_group *next;
        char name[FENCE_NAME_SIZE];
        uint32_t *ranks, n_ranks; /* NULL = all of the job */
        uint32_t *local, n_local;
        uint32_t *nodes, n_nodes;
        uint32_t n_completed; /* fences */
        uint64_t n_fetched;   /* values: of all nodes for each fence, in order */
        struct fence_op *ops;
};

struct fence {
        struct fence_world world;
        struct relay_client *client;
        struct fence_group *groups, *all;
        unsigned n_groups;
        uint32_t last_tag;
        uint32_t shown_tag; /* of fence_show_wait(); 0 = not shown */
};

/* Finds or makes the group of @n ranks; NULL = all. Returns the errors of fence_begin(). */
int fence_group_find(struct fence *f, const uint32_t *ranks, uint32_t n, struct fence_group **ret);
/* Adds a group missing in @f; @ranks is copied, NULL = all. */
struct fence_group *fence_group_add(struct fence *f, const uint32_t *ranks, uint32_t n);
/* Frees a group with its operations; no list may hold the group. */
void fence_group_free(struct fence_group *g);
