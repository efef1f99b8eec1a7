/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job role ports: addresses and ports of the instances of roles, for texts and orders
 *
 * Main loop's thread only.
 */
#pragma once

#include "base/error.h"

struct cluster;
struct launch_order;
struct plan;
struct role_book;
struct world_endpoints;

/* What the functions read, and the book of the roles; NULL = a job without roles, for which they do
 * nothing. All is borrowed. */
struct job_role_ports {
        const struct cluster *cluster;
        const struct world_endpoints *endpoints;
        struct role_book *book;
        const struct plan *plan;
};

/* Enters the instances of all roles of the plan into the book, in place of those before, with
 * address and reserved ports. 0, or negative with @err: a node has no usable address. */
int job_role_ports_describe(const struct job_role_ports *p, struct error *err);
/* Sets the ports of the ranks of an order; launch_order_drop_rank_ports() frees them. */
void job_role_ports_fill(const struct job_role_ports *p, struct launch_order *m);
