/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host order: hosts of one domain side by side, and segments that lie within one (--order topology,
 * --segment)
 *
 * The domain of a host is its NVLink domain, else its block or leaf switch (host_domain()). Hosts
 * are ordered by domain; domains and the hosts in them by switch, in the order of the network, and
 * then by name, node2 before node10. Hosts without a domain come last. Pure.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/term/diag.h"

/* Orders the hosts: first @needed of the usable ones (0 = all of them), from as few domains as
 * possible and in segments of @segment hosts (0 = none), then the other usable ones, then those
 * with a false usable[i]. Returns the indices, malloc'ed; NULL with an error in @d (exit 69): the
 * segments do not fit. */
size_t *host_order_choose(const struct hosts *h, const bool *usable, size_t needed, size_t segment,
                          struct diags *d);
/* Returns the place in nodes[], indices of @n hosts, where the first segment begins that is not
 * within one domain, or has too few hosts; @n: there is none. */
size_t host_order_find_split(const struct hosts *h, const size_t *nodes, size_t n, size_t segment);
/* Writes the domains of the hosts: "domain a has 12 nodes (gpu[001-012]), b has 4 (gpu[013-016])".
 * malloc'ed. */
char *host_order_describe(const struct hosts *h, const size_t *nodes, size_t n);
/* Writes a domain for people, cut from the UUID of NVLink: "3f2a91c0.1", or "leaf1". malloc'ed. */
char *host_order_domain_name(const char *domain);
