/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host keys: what may follow a host on its line, key=value
 *
 * Pure and reentrant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "head/hosts/hosts.h"
#include "head/hosts/range.h"

enum host_attr {
        KEY_SLOTS,
        KEY_MAX_SLOTS,
        KEY_GPUS,
        KEY_PORT,
        KEY_USER,
        KEY_ADDR,
        KEY_IFACE,
        KEY_NUMA,
        KEY_TAGS,
        KEYS,
        KEY_FOREIGN = KEYS, /* other launchers have it, here it means nothing */
        KEY_UNKNOWN,
};

/* The names of our own, for suggestions and messages: by enum host_attr. */
extern const char *const host_key_names[KEYS];

/* The values of one line. */
struct host_attrs {
        char *user, *iface, *numa, *tags; /* NULL = not given */
        struct strv addrs;                /* none, or one for each host of the line */
        int port, slots, max_slots;       /* 0 = not given */
        bool slots_given;                 /* slots may be 0 then: "auto" */
        bool has_gpus;
        struct intlist gpus;
};

/* Synonyms count, `-` is `_`. @name gets the key as text, cut to its size. */
enum host_attr host_attr_find(const char *text, size_t len, char *name, size_t size);

/* Reads the value of @key < KEYS, which must not have one yet, on a line with @n_hosts hosts (0 =
 * unknown, because they are wrong). 0, or -EINVAL with @e filled in. */
int host_attrs_take(struct host_attrs *v, enum host_attr key, const char *text, size_t len,
                    size_t n_hosts, struct range_error *e);
void host_attrs_finish(struct host_attrs *v);
