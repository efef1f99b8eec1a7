/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan view: what all forms of a plan print, read from the plan and the options
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "head/options/options.h"

struct role_book;

struct plan_view {
        const struct plan *p;
        const struct hosts *hosts;
        const struct options *o;
        const struct strv *ports;               /* names of the ports that the ranks need */
        const struct role_book *book;           /* of the roles; NULL = none */
        const struct plan_inventory *inventory; /* by host; NULL = the nodes were not asked */
        int *parents;                           /* by host; NULL without --tree */
        struct strv env, unset;                 /* exported variables, and those to be unset */
};

/* Everything is borrowed but the parents and the variables, which plan_view_finish() frees. */
struct plan_view plan_view_make(const struct plan *p, const struct hosts *hosts,
                                const struct options *o, const struct plan_inventory *inventory);
void plan_view_finish(struct plan_view *v);

const struct host *plan_view_host(const struct plan_view *v, int node);
/* Returns the parent in the tree, NULL = the head connects directly. */
const char *plan_view_parent(const struct plan_view *v, const struct plan_node *n);

/* Whether to show devices: when nodes have some, or an option or the hostfile names some. */
bool plan_view_gpus_matter(const struct plan_view *v);
/* Returns GPUs in short, malloc'ed: parts of GPUs as CUDA_VISIBLE_DEVICES names them, or by their
 * place there. */
char *plan_view_fold_gpus(const struct plan_view *v, const struct intlist *gpus);
/* Returns a pair for display: the value of a secret is not shown. malloc'ed. */
char *plan_view_pair(const char *pair);

/* Sets in @env the variables that the agent will set for @rank: plan_ranks.c. */
void plan_view_rank_env(const struct plan_view *v, int rank, struct strv *env);
