/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role list: which ranks of a job are of which role
 *
 * An entry is the ranks of a role in one world: neighbours in the job. Views and records of a run
 * have this list in place of the plan, as JSON in run.json and summary.json. A job without roles
 * has no entries. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "head/model/plan.h"

struct listed_role {
        char *name;
        int replica; /* from 0 */
        int world;   /* plan_rank.world */
        int first;   /* number in the job of its first rank */
        int size;
        int role_rank; /* number of its first rank in the world */
        int nodes;     /* how many have ranks of it */
        int replicas;  /* of the role */
};

/* Zeroed = none. In the order of the ranks. */
struct role_list {
        struct listed_role *v;
        size_t n;
};

/* Ranks of the job. */
struct role_span {
        int first, size;
};

void role_list_from_plan(struct role_list *p, const struct plan *plan);
/* Reads what role_list_json() has made, as far as it is valid; names are made printable. */
void role_list_load(struct role_list *p, const json_t *roles, int n_ranks);
/* Gives a plan that has ranks and nodes its worlds and roles; names are lent to it. Without roles
 * it has one world. */
void role_list_fill_plan(const struct role_list *p, struct plan *plan);
void role_list_finish(struct role_list *p);

/* Returns the entry of a rank, or NULL. */
const struct listed_role *role_list_find(const struct role_list *p, int rank);
/* Returns the number of a rank of the entry in its world. */
int role_list_number(const struct listed_role *entry, int rank);

/* Writes how people call a rank: "rank 3", or with a role "role infer, rank 3", with its number in
 * its world, and if the role has several replicas (@replica >= 0) "role infer:1, rank 3". Returns
 * @to. */
const char *role_rank_name(const char *role, int replica, int number, char to[PLAN_RANK_NAME_MAX]);
const char *role_list_name(const struct role_list *p, int rank, char to[PLAN_RANK_NAME_MAX]);
/* Write the short form: "3", "infer:3", or with replicas "infer:1:3". Return @to. */
const char *plan_rank_label(const struct plan *plan, int rank, char to[PLAN_RANK_NAME_MAX]);
const char *role_list_label(const struct role_list *p, int rank, char to[PLAN_RANK_NAME_MAX]);

/* Return "rank 3", "ranks 0-2", of one role "role infer, ranks 0-2", of several "ranks
 * infer:0-2,router:0". malloc'ed. */
char *plan_ranks_name(const struct plan *plan, const struct intlist *ranks);
char *role_list_ranks_name(const struct role_list *p, const struct intlist *ranks);

/* Returns "3 roles: trainer 8 ranks on 2 nodes, infer 4 on 1", or with @brief "3 roles: trainer 8,
 * infer 4"; replicas are counted together. malloc'ed. */
char *role_list_count(const struct role_list *p, bool brief);
/* Returns the entries as an array of objects; a new reference. */
json_t *role_list_json(const struct role_list *p);
/* Adds "role" and "role_rank" of a rank to @j, if it has a role, and if that has several, the
 * "replica". */
void role_list_put(const struct role_list *p, json_t *j, int rank);

/* Reads NAME[:N], or NAME:REPLICA:N: N alone is a replica of a role that has several, else a rank
 * of its world. Returns the spans of ranks, malloc'ed, with their number; NULL with @err: there is
 * no such role. */
struct role_span *role_list_choose(const struct role_list *p, const char *text, size_t *ret_n,
                                   struct error *err);
