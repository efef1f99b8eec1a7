/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job_endpoint: where the ranks of an attempt find PyTorch's store, and the proof that all reach it
 *
 * The step between plan and launch (design D8). With --store-endpoint network the agent of rank 0's
 * node opens a TCP endpoint and every other agent tries the addresses of that node, at the same
 * time: one round trip. The first address that all reached becomes MASTER_ADDR. With loopback, and
 * on one node, every agent opens an endpoint on 127.0.0.1. With none nothing is opened: rank 0's
 * process will listen at the node's best address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "head/model/master_addr.h"
#include "head/model/plan.h"
#include "head/options/options.h"
#include "wire/endpoint_msg.h"

struct job;

/* What one node said. */
struct job_endpoint_node {
        bool asked_endpoint;
        unsigned asked_probe; /* orders; one takes the place of the one before */
        bool has_probed;
        struct endpoint_opened *endpoint_opened; /* NULL = not yet */
        struct probed probed;
};

struct job_endpoint {
        enum store_listen mode; /* LOOPBACK for a job of one node */
        size_t first;           /* rank 0's node */
        int64_t timeout_ms;     /* for one address */
        uint32_t port;          /* network and none: MASTER_PORT */
        char token[ENDPOINT_TOKEN + 1];
        struct master_addr_list candidates;
        int chosen;                      /* a candidate; -1 = none was reached by all */
        struct job_endpoint_node *nodes; /* one per host */
        size_t answered;                 /* the nodes before this one have */
        size_t failed_seen;              /* the job's failed nodes when we last looked at each */
        bool refused;                    /* an agent could not open its endpoint */
};

/*
 * Opens the endpoint and chooses the address; to be called before each job_launch(), with agents
 * that are READY. An endpoint of an earlier call is replaced, with a new token. Runs the loop.
 *
 * 0: job_launch() may follow. JOB_INTERRUPTED: a signal came, see job_outcome(). -EHOSTUNREACH: a
 * node was lost, see job_node(). -ENETUNREACH: no address was reached by all, or an endpoint could
 * not be opened; report_endpoint() tells which. -EADDRNOTAVAIL with @err: rank 0's node has no
 * usable address on the wanted network.
 */
int job_open_endpoint(struct job *j, const struct plan *plan, struct error *err);

/* Of the last job_open_endpoint(). */
const struct job_endpoint *job_endpoint(const struct job *j);
