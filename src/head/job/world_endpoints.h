/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World_endpoints: where the ranks of each world meet
 *
 * A struct endpoint_setup for each world of the plan. World 0 has one from the start, other worlds
 * from the first attempt on. Nodes answer to one world after the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "head/job/job.h"
#include "head/job/job_ports.h"

struct attempt;
struct cluster;
struct endpoint_setup;
struct heartbeat;
struct plan;
struct world_endpoints;

/* All pointers are borrowed. */
struct world_endpoints *world_endpoints_create(struct cluster *c, struct attempt *a,
                                               struct heartbeat *h, struct port_names ports);
/* Closes the timers; world_endpoints_free() after the loop has turned. */
void world_endpoints_close(struct world_endpoints *w);
void world_endpoints_free(struct world_endpoints *w);

/* Returns the setup of a world; NULL = there is no such world. */
struct endpoint_setup *world_endpoints_get(const struct world_endpoints *w, uint32_t world);
/* Returns the setup that was opened last: the failed one when one has failed. */
struct endpoint_setup *world_endpoints_last(const struct world_endpoints *w);

/* job_endpoint_open() for each world of the plan, up to the first failure. */
enum job_step world_endpoints_open(struct world_endpoints *w, const struct plan *plan,
                                   struct error *err);

/* job_endpoint_owes() and job_endpoint_serves() of any world. */
bool world_endpoints_owe(const struct world_endpoints *w, size_t node);
bool world_endpoints_serve(const struct world_endpoints *w, size_t node);
/* job_endpoint_forget(), and job_owners_lost(), of each world. */
void world_endpoints_forget(const struct world_endpoints *w, size_t node);
void world_endpoints_lost(const struct world_endpoints *w, size_t node);
