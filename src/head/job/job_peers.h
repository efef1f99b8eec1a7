/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job peers: the tests between nodes of `hnlaunch check`, from the first port to the results
 */
#pragma once

#include "head/check/check_judge.h"
#include "head/check/pair_book.h"
#include "head/check/peer_judge.h"
#include "head/job/job.h"
#include "head/job/job_measure.h"

/* What is measured between the nodes. All lent. */
struct peers_how {
        bool measure;                  /* bandwidth and latency; else only who reaches whom */
        const json_t *base;            /* earlier results (head/check/baseline.h); NULL = none */
        const struct pairs_nccl *nccl; /* NULL = TCP is measured */
        const char *over;              /* of pair_book_create() */
};

struct job_peers {
        struct check_pair *tries; /* of reachability, and failed measurements */
        size_t n_tries;
        char **refusals; /* by node: why it does not listen; NULL = it does */
        size_t n_nodes;
        size_t *tested; /* nodes that took part */
        size_t n_tested;
        struct pair_book *book; /* NULL = nothing was to be measured */
};

/* Has the READY nodes of the job reach each other, and measures as @how says. JOB_DONE or
 * JOB_INTERRUPTED. After job_connect(); job_peers_finish() frees what is found. */
enum job_step job_peers_find(struct job *j, size_t n_nodes, const struct peers_how *how,
                             struct job_peers *to);
/* Adds the lines of what was found. The nodes of @r are those of the job. @how: of peer_judge(). */
void job_peers_judge(const struct job_peers *p, struct check_report *r,
                     const struct peer_blame *how);
void job_peers_finish(struct job_peers *p);
