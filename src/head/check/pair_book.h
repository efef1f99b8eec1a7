/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair book: bandwidth and latency between nodes, and the slow nodes and links (`check --pairs`)
 *
 * After the rounds of pair_rounds.h suspects are measured again: a node slow with most peers is
 * measured with proven nodes, a slow connection of two good nodes is measured once more. The best
 * of all measurements of a pair counts, so a disturbance does no harm. Slow: below half the usual
 * bandwidth, or above four times the usual latency. A pair with which NCCL fails has no bandwidth
 * and no latency. Pure.
 */
#pragma once

#include "head/check/pair_rounds.h"

struct pair_book;

/* @over of pair_book_create(), where the GPUs were measured. */
#define PAIR_NCCL "NCCL"

enum pair_metric { PAIR_BANDWIDTH, PAIR_LATENCY, PAIR_METRICS };

/* The best of the measurements of two nodes. */
struct pair_edge {
        size_t a, b;                /* places in the list of nodes, a < b */
        double value[PAIR_METRICS]; /* bytes per second in the slower direction, seconds */
        double least;               /* expected bandwidth, 0 = none */
        unsigned tries;
        char *why; /* why NCCL failed; counts without a bandwidth. NULL = no failure */
};

struct pair_place {
        double value; /* the median of the pairs */
        size_t slow, pairs;
        bool bad; /* the node is slow, not the links */
};

struct pair_judgement {
        double usual;              /* of the median node */
        struct pair_place *places; /* by place in the list of nodes */
        size_t n;
        const struct pair_edge **links; /* slow pairs of nodes that are not bad; lent */
        size_t n_links;
};

/* The nodes in rising order; lent. @over: the library in a sentence, "NCCL"; NULL = TCP. */
struct pair_book *pair_book_create(const size_t *nodes, size_t n, const char *over);
const char *pair_book_over(const struct pair_book *b); /* lent */
void pair_book_free(struct pair_book *b);
/* Has two places measured again with less than @least bytes per second. Before the first round;
 * once for each two places. */
void pair_book_expect(struct pair_book *b, size_t one, size_t other, double least);

/* Fills in the next pairs to be measured, all at once, at most n / 2; 0 = none. */
size_t pair_book_next(struct pair_book *b, struct check_pair *to);
/* Takes the results of these; pairs without a connection are left out. */
void pair_book_take(struct pair_book *b, const struct check_pair *pairs, size_t n);
/* Notes why NCCL has failed with a pair whose result was taken. */
void pair_book_explain(struct pair_book *b, const struct check_pair *pair, const char *why);
/* Returns why NCCL fails with a pair, lent; NULL = no failure. */
const char *pair_edge_failure(const struct pair_edge *e);

const struct pair_edge *pair_book_edges(const struct pair_book *b, size_t *ret_n);
void pair_book_judge(const struct pair_book *b, enum pair_metric m, struct pair_judgement *to);
void pair_judgement_finish(struct pair_judgement *j);
