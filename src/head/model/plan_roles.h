/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan roles: hosts x inventory x roles -> one plan with a world for each role and replica
 *
 * Nodes belong to one role, unless a role stands on the nodes of another (--on). Roles take their
 * nodes in the order of the line: first the hosts that lists name, then numbers of hosts from the
 * first free one, and what is left goes to the role that takes the rest. A role on another is
 * placed when that one has its nodes. Inside a role the rules of plan_build() hold.
 *
 * GPUs and slots of a node are given once over all roles. A role without GPUs (gpus_per_rank 0)
 * takes no slots either. Ranks are numbered role by role in the order of the line, replica by
 * replica; roles of one world (--world) together, at the place of the first. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/model/plan.h"

/* How a role gets its nodes; all zero = as many as its ranks need, without np the rest. */
struct role_nodes {
        int count;   /* so many, of each replica */
        int percent; /* of all hosts, of each replica */
        bool rest;   /* what the other roles leave, shared by the replicas */
        char *list;  /* these hosts, "gpu[001-004]", shared by the replicas */
};

/* The nodes of another role that a role stands on. */
enum { ROLE_EACH_NODE = -2, ROLE_LAST_NODE = -1 };
struct role_place {
        char *role; /* NULL = nodes of its own */
        int node;   /* one of its nodes, from 0; ROLE_LAST_NODE, ROLE_EACH_NODE */
};

struct plan_role {
        char *name;
        char *world; /* roles with equal names share a world; NULL = one of its own */
        struct role_nodes nodes;
        struct role_place on;
        int replicas;    /* equal worlds; 0 = 1 */
        bool share_gpus; /* may have GPUs and slots of other roles, too */
        char *place;     /* of the role in a file, "rl.ini:12", for messages; NULL = none */
        struct plan_options plan;
};

/* Whether the role takes the nodes that the others leave. */
bool plan_role_takes_rest(const struct plan_role *role);

/* Fills @p, which is PLAN_INIT and stays so on failure, from @n roles whose places (on) lead in no
 * circle; plan_rank.program is the number of the role. 0, or -EINVAL with errors in @diags: fewer
 * hosts than the roles need (HN315), a host in the lists of two roles (HN315), GPUs or slots that
 * another role has (HN316), a host that is not in @hosts (HN140), and all of plan_build(), with the
 * name of the role. */
int plan_roles_build(struct plan *p, const struct hosts *hosts, const struct plan_inventory *inv,
                     const struct plan_role *roles, size_t n, struct diags *diags);
