/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job ports: TCP ports of nodes, kept free until the ranks of an attempt start
 *
 * Each has a name, HN_PORT_NAME for the ranks. Rank 0's node has the ports that are the same for
 * all ranks of the world; MASTER_PORT is one more when the ranks serve it themselves and the
 * promise of HELLO is used up. In a job of roles each node has the ports of its instances, too
 * (head/model/role_book.h). The agent binds them on the order PORTS, sent with the order to open
 * the store's endpoint, and answers PORTS_HELD; it closes them right before it starts the ranks.
 * Every attempt has other ports. Main loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/endpoint_msg.h"
#include "wire/msg.h"

struct node;
struct plan;
struct role_book;

/* The names of ports that ranks need; borrowed. */
struct port_names {
        const struct strv *first_node; /* ports of rank 0's node; NULL = none */
        const struct role_book *book;  /* ports of instances; NULL = none */
};

/* The order to a node. */
struct job_ports_node {
        unsigned orders;         /* without an answer, also of earlier attempts */
        uint32_t wanted;         /* by this attempt */
        struct ports_held *held; /* the answer; NULL = not yet */
};

struct job_ports {
        struct port_names names;
        uint32_t world;
        bool master;                  /* this attempt asks for MASTER_PORT: the first number */
        size_t first;                 /* rank 0's node */
        struct job_ports_node *nodes; /* by host */
        size_t n_nodes;
};

/* Borrows the names, valid ones of wire/port_name.h. */
void job_ports_init(struct job_ports *p, struct port_names names, size_t n_nodes, uint32_t world);
void job_ports_finish(struct job_ports *p);

/* Begins an attempt: orders the ports from @nodes, by host, where any are needed. */
void job_ports_order(struct job_ports *p, struct node *nodes, const struct plan *plan, size_t first,
                     bool master);
/* Takes PORTS_HELD. 0, or -EPROTO with @err: malformed, not asked for, or another number of ports.
 */
int job_ports_held(struct job_ports *p, const struct node *n, const struct frame *f,
                   struct error *err);
/* Another agent will run on @node: answers to earlier orders are not waited for. */
void job_ports_forget(struct job_ports *p, size_t node);
/* Whether @node was asked and has not answered. */
bool job_ports_owed(const struct job_ports *p, size_t node);
/* Whether the agent of @node could not bind the ports. */
bool job_ports_refused(const struct job_ports *p, size_t node);
/* Returns why an agent could not bind the ports, and its node; or NULL. */
const char *job_ports_refusal(const struct job_ports *p, size_t *ret_node);
/* Returns MASTER_PORT of this attempt; 0 = it was not asked for. */
uint32_t job_ports_master(const struct job_ports *p);
/* Adds names and numbers to an order; the caller frees m->ports. */
void job_ports_fill(const struct job_ports *p, struct launch_first_node *m);
/* Returns the ports of the instance of a rank, in the order of role_book_ports(); lent. */
const uint32_t *job_ports_of_rank(const struct job_ports *p, const struct plan *plan, int rank);
