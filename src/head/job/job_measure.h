/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job measure: connections between the nodes of a job, for `hnlaunch check`
 *
 * The agents listen at ports of their own while a measure is there; pairs of nodes are then tried,
 * or measured, all at once. The address of a node is that at which ranks of the other node would
 * look for it (head/model/master_addr.h). Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "head/check/pair_rounds.h"
#include "head/job/job.h"
#include "wire/measure_msg.h"

struct cluster;
struct job_measure;

/* The GPUs are measured, with NCCL. All lent. */
struct pairs_nccl {
        const char **libraries; /* by node: the path of libnccl */
        struct strv env;        /* of ranks, where it differs from the agents' */
};

enum { JOB_MEASURE_MS = 150, JOB_MEASURE_BYTES = 32 << 20 }; /* sent each way, at most */

/* Lets the READY agents listen, and waits for them, for some seconds at most. Pairs will be
 * measured with @nccl, borrowed; NULL = over TCP. JOB_DONE or JOB_INTERRUPTED. After job_connect();
 * then call job_measure_end() in any case. */
enum job_step job_measure_begin(struct job *j, const struct pairs_nccl *nccl,
                                struct job_measure **ret);
/* Returns why NCCL has failed in the last measurement that @node began, lent. */
const char *job_measure_failure(const struct job_measure *m, size_t node);
/* Returns why no node can connect to @node, lent; NULL = it listens. */
const char *job_measure_refusal(const struct job_measure *m, size_t node);
/* Has the pairs tried, all at once, a peer for @timeout_ms at most, or measured, and waits for the
 * answers. Pairs with a node that does not listen stay untold. JOB_DONE or JOB_INTERRUPTED. */
enum job_step job_measure_pairs(struct job *j, struct job_measure *m, struct check_pair *pairs,
                                size_t n, uint32_t timeout_ms, bool measure);
/* The agents close their ports. Frees the measure. */
void job_measure_end(struct job *j, struct job_measure *m);

/* --- for the files of the job --- */

struct job_measure *job_measure_create(struct cluster *c, const struct pairs_nccl *nccl);
/* Orders the nodes to listen, or to close their ports. */
void job_measure_order_listen(struct job_measure *m, uint32_t number, bool listen);
void job_measure_order_pairs(struct job_measure *m, uint32_t number, struct check_pair *pairs,
                             size_t n, uint32_t timeout_ms, bool sends);
/* Takes an answer. False: there are more or fewer results than the node was asked for. */
bool job_measure_take(struct job_measure *m, size_t node, const struct measured *from);
/* Returns the time for a measured pair beside that for the answer of a peer. */
uint64_t job_measure_pair_ms(const struct job_measure *m);
bool job_measure_owes(const struct job_measure *m); /* a node that is there was asked */
/* Nodes that still owe an answer take no further part. */
void job_measure_give_up(struct job_measure *m);
void job_measure_free(struct job_measure *m);
