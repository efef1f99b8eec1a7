/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check_rules: the checks, and the rules for values of a single node
 *
 * check_judge.c goes through the rows, compares the nodes, and calls the rules. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "head/check/check_judge.h"

/* A check on a node, being judged. */
struct check_case {
        const struct check_node *node;
        const char *name, *value; /* of the fact */
        const char *most;         /* the value of most nodes */
        double median;            /* over all nodes with a number */
        size_t n_known;           /* the number of these nodes */
        size_t n_nodes;
        const double *limits; /* by enum check_limit */
        struct check_result *to;
};

struct check_row {
        const char *name;
        const char *words; /* "HOST has WORDS VALUE" */
        enum { CHECK_TEXT, CHECK_ABOUT, CHECK_SIZE, CHECK_SECONDS } kind;
        enum check_level drift;             /* of another value than most nodes have */
        void (*rule)(struct check_case *c); /* NULL = none */
        const char *absent; /* the value for "nothing to check", if all nodes agree */
        const char *why;    /* ... in words */
        const char *help;
        bool each;     /* of each program */
        bool optional; /* no line if no node has the fact */
        bool median;   /* the rule compares with the median of the nodes */
};

/* Returns a row of the table; NULL = behind the last. */
const struct check_row *check_row_at(size_t i);
/* Whether a value counts for the comparison. A missing file does not: where most nodes lack a file,
 * the nodes with the file are right. */
bool check_row_compares(const struct check_row *row, const char *value);

/* Returns the fact of a node, lent; NULL = the node has not sent the fact. */
const struct check_fact *check_fact_find(const struct check_node *n, const char *name);
/* Return the number at the front of a text or fact, INFINITY = no number. */
double check_read_amount(const char *text);
double check_fact_amount(const struct check_node *n, const char *name);

/* The texts of a result. All empty texts share memory. */
char *check_text_copy(const char *text);
void check_text_free(char *text);
/* Sets the result of a rule: "HOST " and @fmt is the cause. */
PRINTF(4, 5)
void check_case_set(struct check_case *c, enum check_level level, const char *expected,
                    const char *fmt, ...);
/* Makes a result "not run" because of @why. */
void check_result_skip(struct check_result *to, const char *why);
