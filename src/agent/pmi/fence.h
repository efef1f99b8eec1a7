/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence: nodes of the job exchange one value each, over the store
 *
 * PMI's barriers and PMIx's fences use this exchange. A fence has members: all ranks of the job, or
 * some. Every node with a member brings a value of any length up to STORE_VALUE_MAX; the fence is
 * complete when all these nodes have begun the fence. The values can be fetched with the fence or
 * later: a fence without values costs a barrier.
 *
 * On the wire a fence is a SET of the node's value, a BARRIER naming the local members, and a FETCH
 * of the values of all nodes, equal on all nodes (store/relay/relay.h merges these requests in a
 * tree). The keys begin with STORE_OWN_PREFIX: no rank can name such a key. Values stay in the
 * store until the attempt ends. Fences of the same members take place one after the other, in order
 * of their beginning, which must be the same on all nodes; fences of different members are
 * independent.
 *
 * No descriptors. One object per attempt and node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/relay/relay.h"
#include "wire/store_msg.h"

struct fence;

enum { FENCE_GROUPS_MAX = 4096 /* different sets of members */ };

/* Where ranks run; borrowed for the life of the fence. */
struct fence_world {
        const uint32_t *node_of_rank; /* each below n_nodes */
        uint32_t n_ranks, n_nodes;
        uint32_t node; /* this node, which has a rank */
};

/* A callback may begin the next fence, and may not destroy the object. */
struct fence_waiter {
        /* A node's value; lent. Called before done, by fences in order, then by nodes; not for an
         * empty value. NULL = fetch nothing now. */
        void (*value)(void *ctx, uint32_t node, struct bytes value);
        /* The end, called once. STORE_PEER: a member has failed or left, named in @text; other
         * failures are failures of the store. */
        void (*done)(void *ctx, enum store_status status, struct bytes text);
        void *ctx;
};

/* @relay is borrowed. NULL = no memory. */
struct fence *fence_create(struct relay *relay, struct fence_world world);
/* Ends all fences without callbacks. NULL is fine. */
void fence_destroy(struct fence *f);

/* Begins a fence of @n ranks in ascending order, at least one on this node; NULL = all ranks of the
 * job. @value is copied. With w.value, the values of this fence and of earlier fences of the same
 * members follow, unless fetched before. 0, or a negative errno without a callback: -EINVAL: the
 * ranks are not in order, do not exist or none runs here; -ENOBUFS: too many sets of members;
 * -EMSGSIZE: the value is too large. */
int fence_begin(struct fence *f, const uint32_t *ranks, uint32_t n, struct bytes value,
                struct fence_waiter w);

/* Lets the store count a waiter of this node, or no more. For members waiting for other members on
 * the same node: the head learns of a fence only when all local members have entered. */
void fence_show_wait(struct fence *f, bool shown);

/* Fetches the values of completed fences of all ranks of the job, unless fetched before; without
 * such values the call itself calls done. */
void fence_fetch(struct fence *f, struct fence_waiter w);
bool fence_has_unfetched(const struct fence *f); /* would fence_fetch() ask the store? */
