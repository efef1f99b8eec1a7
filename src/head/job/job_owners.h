/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job owners: carries the question who owns a connection to the store to the nodes that know
 *
 * The agent with the TCP endpoint asks about connections from other nodes (wire/endpoint_msg.h).
 * The nodes with ranks that have the address are asked; of several (behind one translated address,
 * or containers of one machine) one that knows the socket as the user's is enough. Nodes are judged
 * by the addresses of their own HELLO and hostfile line, and each answers a question once. Every
 * question is answered: what a node has not said after OWNERS_TICKS looks, or when it is lost, is
 * OWNER_UNKNOWN. Looks are counted, not timed, so that a sleep of hnlaunch is one look. Main loop's
 * thread only.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

struct attempt;
struct cluster;
struct job_owners;
struct node;

/* All pointers are borrowed. */
struct job_owners *job_owners_create(struct cluster *c, const struct attempt *a, uint32_t world);
/* Closes the timer; job_owners_free() after the loop has turned. */
void job_owners_close(struct job_owners *o);
void job_owners_free(struct job_owners *o);

/* Appends the numeric addresses from which a rank of the node may connect. */
void job_owners_add_addrs(struct strv *to, const struct node *n);
/* Allows @node to ask from now on, about the nodes of the attempt's plan. Late questions of earlier
 * endpoints stay allowed. */
void job_owners_allow(struct job_owners *o, size_t node);

/* Take OWNERS_REQUEST of the endpoint and OWNERS of a node that was asked. 0, or negative with
 * @err: malformed, or out of turn. */
int job_owners_ask(struct job_owners *o, size_t node, const struct frame *f, struct error *err);
int job_owners_answer(struct job_owners *o, size_t node, const struct frame *f, struct error *err);
/* @node will answer nothing any more. */
void job_owners_lost(struct job_owners *o, size_t node);
