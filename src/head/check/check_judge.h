/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check_judge: compares the facts of all nodes and judges them (`hnlaunch check`)
 *
 * A table has a row for each check: the spelling of the value, the meaning of a difference between
 * the nodes, and a rule. Values are compared between the nodes first: the value of most nodes
 * counts, the others differ. The rule, with a limit of a profile, comes second; the worse of both
 * is the result. A fact that a node could not find is "not run", never a pass. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/check/check_profile.h"
#include "wire/check_msg.h"

enum check_level { CHECK_PASS, CHECK_NOT_RUN, CHECK_WARN, CHECK_FAIL, CHECK_LEVELS };

/* A node to judge. All is lent. */
struct check_node {
        const char *host;
        const char *lost;      /* why there is no connection; NULL = connected */
        unsigned ranks;        /* of the node: each rank needs memory */
        unsigned gpus_wanted;  /* by the node's slots; 0 = any number will do */
        struct checked *facts; /* of the agent, and of the head */
        bool aside;            /* has no ranks: other nodes need not have the same files */
};

/* The result of a check on a node. */
struct check_result {
        enum check_level level;
        char *value;      /* for people; "" = not known */
        char *expected;   /* "" = nothing certain */
        size_t others;    /* the number of nodes with @expected; 0 = by a rule */
        char *cause;      /* "gpu017 has driver 570.86, 63 others have 575.57"; "" of a pass */
        const char *help; /* the next step; "" of a pass */
        bool set;         /* by check_report_set() */
};

struct check_line {
        char *name;
        struct check_result *of; /* by node */
        size_t count[CHECK_LEVELS];
        char *summary; /* of different values of a pass, NULL = none */
};

struct check_report {
        const struct check_node *nodes;
        size_t n_nodes;
        struct check_line *v;
        size_t n;
        const struct check_profile *profile; /* lent, NULL = none */
        bool strict;                         /* warnings are failures */
};

/* A result from outside of the table. Members as of check_result; lent for the call. */
struct check_judgement {
        enum check_level level;
        const char *value, *expected;
        size_t others;
        const char *cause;
        const char *help; /* a static text */
};

/* Judges the nodes. @strict: warnings are failures, also the warnings made by a profile. */
void check_judge(struct check_report *r, const struct check_node *nodes, size_t n, bool strict);
void check_judge_by(struct check_report *r, const struct check_node *nodes, size_t n,
                    const struct check_profile *profile, bool strict);
void check_report_finish(struct check_report *r);
/* Adds a line, valid until the next is added; each node needs a result then. */
struct check_line *check_report_add(struct check_report *r, const char *name);
void check_report_set(const struct check_report *r, struct check_line *l, size_t node,
                      const struct check_judgement *k);

/* Returns the result of a node, or the worst of all nodes. Checks not run count only without any
 * other. */
enum check_level check_node_level(const struct check_report *r, size_t node);
enum check_level check_whole_level(const struct check_report *r);
/* Whether there is a check of this name. *ret_fact: the check's values are facts, judged by the
 * table. */
bool check_exists(const char *name, bool *ret_fact);
const char *check_level_name(enum check_level level); /* "not run" */

/* Whether a fact of a node should not change over time. */
bool check_is_kept(const char *name);
/* Returns how a fact that should not change has changed, malloc'ed: "shm.size 17.2 GB, was 34.4
 * GB"; NULL = within the tolerance. */
char *check_describe_change(const char *name, const char *then, const char *now);
/* Returns the value of a fact, lent; NULL = the node has sent no value. */
const char *check_fact_value(const struct check_node *n, const char *name);
