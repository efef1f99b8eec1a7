/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job endpoint: the address at which the ranks of an attempt find PyTorch's store
 *
 * Opened between plan and launch (decision D8). With --store-listen network the agent of rank 0's
 * node opens a TCP endpoint, and at the same time every other agent probes all addresses of this
 * node, in a single round trip. The first address that all agents reached becomes MASTER_ADDR. With
 * loopback, and on one node, every agent opens an endpoint on 127.0.0.1. With none nothing is
 * opened: the process of rank 0 will listen at the node's best address. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "head/job/job.h"
#include "head/job/job_ports.h"
#include "head/model/master_addr.h"
#include "head/model/plan.h"
#include "head/options/options.h"
#include "wire/endpoint_msg.h"
#include "wire/msg.h"

struct attempt;
struct cluster;
struct endpoint_setup;
struct heartbeat;
struct job;
struct job_owners;
struct node;

/* The answers of one node. */
struct job_endpoint_node {
        bool asked_endpoint, asked_probe, has_probed;
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
        int chosen;                      /* a candidate; -1 = no address is reached by all */
        struct job_endpoint_node *nodes; /* one per host; NULL = nothing was opened yet */
};

/*
 * Opens the endpoint and chooses the address; to be called before each job_launch(), with READY
 * agents. An endpoint of an earlier call is replaced, with a new token. Runs the loop.
 *
 * JOB_NODES_UNFIT: no address was reached by all, or an endpoint or a port for the ranks could not
 * be opened. JOB_IMPOSSIBLE: rank 0's node has no usable address on the wanted network.
 */
enum job_step job_open_endpoint(struct job *j, const struct plan *plan, struct error *err);

/* Returns the result of the last job_open_endpoint(), lent. */
const struct job_endpoint *job_endpoint(const struct job *j);

/* Returns why a node could not reserve ports for the ranks, and the node; or NULL. */
const char *job_port_refusal(const struct job *j, size_t *ret_node);

/* --- for the files of the job --- */

/* All pointers are borrowed. */
struct endpoint_setup *job_endpoint_create(struct cluster *c, struct attempt *a,
                                           struct heartbeat *h, struct port_names ports,
                                           uint32_t world);
/* job_open_endpoint(). */
enum job_step job_endpoint_open(struct endpoint_setup *s, const struct plan *plan,
                                struct error *err);
const struct job_endpoint *job_endpoint_result(const struct endpoint_setup *s);
/* Returns the part that answers the endpoint's questions (head/job/job_owners.h), lent. */
struct job_owners *job_endpoint_owners(struct endpoint_setup *s);
const struct job_ports *job_endpoint_reserved(const struct endpoint_setup *s); /* lent */

/* Take ENDPOINT_OPENED and PROBED. 0, or negative with @err: malformed, or not asked for. */
int job_endpoint_opened(struct endpoint_setup *s, size_t node, const struct frame *f,
                        struct error *err);
int job_endpoint_probed(struct endpoint_setup *s, size_t node, const struct frame *f,
                        struct error *err);
/* Takes PORTS_HELD, as job_ports_held(). */
int job_endpoint_ports(struct endpoint_setup *s, const struct node *n, const struct frame *f,
                       struct error *err);
/* Another agent will run on @node: answers to earlier orders are not waited for. */
void job_endpoint_forget(struct endpoint_setup *s, size_t node);
/* Whether @node was asked and has not answered. */
bool job_endpoint_owes(const struct endpoint_setup *s, size_t node);
/* Whether the ranks of all nodes find the store at the TCP endpoint of @node. */
bool job_endpoint_serves(const struct endpoint_setup *s, size_t node);
/* Fills in address and ports of rank 0's node; the caller frees m->first_node.ports. */
void job_endpoint_fill_common(const struct endpoint_setup *s, struct launch_order *m);
/* Fills in address, port and interface of the store for the ranks of @node. */
void job_endpoint_fill(const struct endpoint_setup *s, size_t node, struct launch_order *m);

/* Closes the timer; job_endpoint_free() after the loop has turned. */
void job_endpoint_close(struct endpoint_setup *s);
void job_endpoint_free(struct endpoint_setup *s);
