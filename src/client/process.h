/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process: the identity of this process and its connection
 */
#pragma once

#include <hnlaunch/hnlaunch.h>
#include <stdbool.h>

#include "client/core/conn.h"

struct hn_store {
        char prefix[HN_KEY_MAX + 1];
};

struct hn_group {
        char name[256];
        char backend[16];
        int *ranks; /* NULL = the world */
        int n, my_rank;
};

/* The role of this process, copied from the environment. */
struct process_role {
        char *name; /* NULL = the job has no roles */
        int index;
        char *world; /* HN_WORLD_ROLES, "trainer:0-7,router:8" */
};

struct process {
        struct conn *conn; /* NULL = not initialized */
        struct process_role role;
        bool singleton;
        int rank, world_size, local_rank, local_world_size, node_rank, num_nodes, restart;
        struct topology where; /* empty until first asked for */
        struct hn_store store;
        struct hn_group world;
};

/* The process of this program; NULL and an error before hn_init(). */
struct process *process_get(void);
/* Fetches the topology once. */
hn_status process_locate(struct process *process);
