/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job ports: TCP ports of rank 0's node, kept free until the ranks of an attempt start
 *
 * Each has a name, and all ranks are told the number (HN_PORT_NAME). MASTER_PORT is one more when
 * the ranks serve it themselves and the promise of HELLO is used up. The agent of rank 0's node
 * binds them on the order PORTS, sent with the order to open the store's endpoint, and answers
 * PORTS_HELD; it closes them right before it starts the ranks. Every attempt has other ports. Main
 * loop's thread only.
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

struct job_ports {
        const struct strv *names; /* borrowed; NULL = none */
        uint32_t world;
        bool master;             /* this attempt asks for MASTER_PORT, too: the first number */
        const struct node *node; /* asked in this attempt; NULL = none is needed */
        bool has_answer;
        struct ports_held held;
        unsigned *orders; /* by node: without an answer, also of earlier attempts */
};

/* Borrows @names, valid names of wire/port_name.h. */
void job_ports_init(struct job_ports *p, const struct strv *names, size_t n_nodes, uint32_t world);
void job_ports_finish(struct job_ports *p);

/* Begins an attempt: orders the ports from @first, rank 0's node, if any are needed. */
void job_ports_order(struct job_ports *p, struct node *first, bool master);
/* Takes PORTS_HELD. 0, or -EPROTO with @err: malformed, not asked for, or another number of ports.
 */
int job_ports_held(struct job_ports *p, const struct node *n, const struct frame *f,
                   struct error *err);
/* Another agent will run on @node: answers to earlier orders are not waited for. */
void job_ports_forget(struct job_ports *p, size_t node);
/* Whether @node was asked and has not answered. */
bool job_ports_owed(const struct job_ports *p, size_t node);
/* Returns why the agent could not bind the ports, or NULL. */
const char *job_ports_refusal(const struct job_ports *p);
/* Returns MASTER_PORT of this attempt; 0 = it was not asked for. */
uint32_t job_ports_master(const struct job_ports *p);
/* Adds names and numbers to an order; the caller frees m->ports. */
void job_ports_fill(const struct job_ports *p, struct launch_first_node *m);
