/* SPDX-License-Identifier: Apache-2.0 */
/*
 * World_stores: access to the stores of all worlds that have ranks on this node
 *
 * Each world of the job has a store of its own at the head, and a struct store_access here. That of
 * world 0 exists from the start; another one is made by the first message about the world.
 */
#pragma once

#include "agent/endpoint/store_access.h"

struct world_stores;

/* All pointers are borrowed. */
struct world_stores *world_stores_create(uv_loop_t *loop, struct uplink *up,
                                         struct node_trace *trace);
void world_stores_destroy(struct world_stores *w); /* after store_access_close() of each */

/* Returns the store of a world, below MSG_MAX_WORLDS, which is made if needed; lent. */
struct store_access *world_stores_get(struct world_stores *w, uint32_t world);
/* Opens the Unix socket of a world: at @path for world 0, else behind "@path-". *@ret is the store
 * of the world. 0 or a negative errno. */
int world_stores_listen(struct world_stores *w, uint32_t world, const char *path,
                        struct store_access **ret, struct error *err);
/* The attempt is over on this node: store_access_end() of each. */
void world_stores_end(struct world_stores *w);

void world_stores_each(struct world_stores *w, void (*fn)(struct store_access *s));
/* store_access_each_local() of each. */
void world_stores_each_local(struct world_stores *w,
                             void (*fn)(void *ctx, const struct relay_client *c, uint32_t rank),
                             void *ctx);

/* Takes a WORLD of the head, for @stores, a struct world_stores. */
void world_stores_on_world(void *stores, const struct frame *f);
