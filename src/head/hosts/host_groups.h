/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host groups: hosts with equal failures, or equal in another respect, for a message or row each
 *
 * Groups and the hosts in a group keep the order in which they are added. The search is linear:
 * hosts fail in a few ways. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* At least one host. */
struct host_group {
        size_t *hosts, n; /* indices into struct hosts */
};

struct host_groups {
        struct host_group *v;
        size_t n;
};

/* Whether hosts @a and @b belong to the same group. */
typedef bool (*host_equal)(const void *ctx, size_t a, size_t b);

/* Adds @host to the group whose first host is @equal to it, else to a new group. */
void host_groups_add(struct host_groups *g, size_t host, host_equal equal, const void *ctx);
void host_groups_finish(struct host_groups *g);

/* Appends @host. */
void host_group_add(struct host_group *g, size_t host);
void host_group_finish(struct host_group *g);
