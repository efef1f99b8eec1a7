/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World_servers: the stores of all worlds of an attempt
 *
 * Each world has a struct store_server of its own, whose ranks count from 0. Here and in the
 * callbacks ranks have their numbers in the job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head/job/store_server.h"

struct plan;
struct world_servers;

/* As struct store_server_ops, with the world of a message. */
struct world_servers_ops {
        void (*send)(void *ctx, uint32_t world, int node, const void *head, size_t len,
                     struct bytes rest);
        struct store_server_ops of_rank; /* without send */
};

/* @hosts are the names of all nodes, lent for the call; @limit is that of store_server_limit() for
 * each world. @ops is copied, @plan and @ctx are borrowed. */
struct world_servers *world_servers_create(const struct world_servers_ops *ops, void *ctx,
                                           const struct plan *plan, const char *const *hosts,
                                           size_t limit);
void world_servers_destroy(struct world_servers *w); /* NULL is fine */
/* Makes the store of a world empty: all its ranks have ended and start again. */
void world_servers_renew(struct world_servers *w, uint32_t world, const char *const *hosts);

/* store_server_receive(); -EPROTO, too: there is no such world. */
int world_servers_receive(struct world_servers *w, uint32_t world, int node, const void *body,
                          size_t len, struct error *err);
/* The functions of the server of the rank's world. */
void world_servers_rank_failed(struct world_servers *w, int rank, const char *text);
void world_servers_rank_exited(struct world_servers *w, int rank);
bool world_servers_has_joined(const struct world_servers *w, int rank);
bool world_servers_has(const struct world_servers *w, uint32_t world, const char *key);
uint64_t world_servers_met(const struct world_servers *w, uint32_t world);
/* The functions of all servers: sums of the counts. */
void world_servers_set(struct world_servers *w, const char *key, const char *value);
void world_servers_node_lost(struct world_servers *w, int node);
void world_servers_stop_requested(struct world_servers *w, const char *text);
uint64_t world_servers_requests(const struct world_servers *w);
size_t world_servers_waiting(const struct world_servers *w);
