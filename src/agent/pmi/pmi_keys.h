/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_keys: the key-value space of PMI as a node knows it
 *
 * Keys put by local ranks are readable at once, and pending until the next fence takes the keys to
 * the other nodes. Keys of other nodes are merged after a fetch. A later value of a key replaces
 * the earlier value.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "wire/store_msg.h"

enum {
        PMI_KEY_MAX = 255,
        PMI_KEYS_BYTES_MAX = 256 << 20, /* of all keys and values */
};

struct pmi_keys {
        struct pmi_key *by_name;
        size_t bytes;
        struct buf pending; /* per key and value: u32 length, bytes */
};

#define PMI_KEYS_INIT                                                                              \
        {                                                                                          \
                0                                                                                  \
        }

/* -EINVAL: the key is empty or too long; -ENOSPC: a limit. */
int pmi_keys_put(struct pmi_keys *k, const char *key, const char *value);
const char *pmi_keys_get(const struct pmi_keys *k, const char *key); /* NULL = none */

/* Merges the pending bytes of another node. -EPROTO: malformed; -ENOSPC: a limit. Keys in front of
 * the fault are merged. */
int pmi_keys_merge(struct pmi_keys *k, struct bytes pending);

void pmi_keys_finish(struct pmi_keys *k);
