/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct_modex: data of a rank for another node, on request, over the store
 *
 * An application without a collecting fence asks for the data of a rank before the first message to
 * the rank. Every node waits at a queue in the store; a request is an item there, and the answer is
 * a key, read and deleted by the asking node alone. The names begin with STORE_OWN_PREFIX. No
 * descriptors. One object per attempt and node.
 */
#pragma once

#include <stdint.h>

#include "store/relay/relay.h"

struct direct_modex;

struct direct_modex_ops {
        /* Another node wants the data of a rank of this node: direct_modex_supply() is due. */
        void (*wanted)(void *ctx, uint32_t id, uint32_t rank);
        /* The answer to direct_modex_ask(); @data is lent. @status is 0 or a PMIx error. */
        void (*answered)(void *ctx, uint32_t id, int32_t status, struct bytes data);
};

/* @relay is borrowed. @node is this node's number. NULL = no memory. */
struct direct_modex *direct_modex_create(struct relay *relay, uint32_t node,
                                         struct direct_modex_ops ops, void *ctx);
void direct_modex_destroy(struct direct_modex *d); /* without callbacks; NULL is fine */

/* Asks @node for the data of @rank. @id is any number, not in use. */
void direct_modex_ask(struct direct_modex *d, uint32_t id, uint32_t node, uint32_t rank);
/* Answers a request of another node; a number that is unknown is ignored. */
void direct_modex_supply(struct direct_modex *d, uint32_t id, int32_t status, struct bytes data);
