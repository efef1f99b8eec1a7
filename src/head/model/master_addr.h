/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Master: the addresses at which the other ranks may reach rank 0's node (MASTER_ADDR)
 *
 * Pure but for the name of addr=, which is looked up here, where the user's resolver is. What is
 * best on paper is proved later by those who have to connect (head/job/job_endpoint.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "head/hosts/hosts.h"
#include "wire/endpoint_msg.h"
#include "wire/msg.h"

enum { MASTER_ADDR_MAX = 16 };

struct master_addr {
        char addr[64];  /* numeric; only the name of an addr= that does not resolve is none */
        char iface[16]; /* of rank 0's node, "" = not one of its own */
        uint32_t prefix;
};

/* Best first. */
struct master_addr_list {
        struct master_addr v[MASTER_ADDR_MAX];
        size_t n;
        bool given; /* addr= or an interface left no others */
};

/*
 * addr= of the hostfile alone, else the addresses of @nodes[0] in this order: the one that ssh
 * reached; those in a network where every other of the @n_nodes has an address, too; the rest;
 * networks of containers and addresses that another node has as well. IPv4 comes before IPv6, then
 * the kernel's order. Loopback and link-local addresses are left out, unless there is nothing else.
 * iface= of the host, else @iface, a name ("ib0") or a network ("10.8.0.0/16"), keeps only what is
 * there; may be NULL. @to is overwritten. 0, or -EADDRNOTAVAIL when that leaves nothing.
 */
int master_addr_candidates(struct master_addr_list *to, const struct host *host,
                           const struct hello *const *nodes, size_t n_nodes, const char *iface,
                           struct error *err);

/* The first candidate that all @n reached, -1 = none. Each has as many results as there are
 * candidates; NULL counts as none of them. */
int master_addr_pick(const struct probed *const *v, size_t n, size_t n_candidates);
/* The candidate that most reached, for a message about the others. */
int master_addr_nearest(const struct probed *const *v, size_t n, size_t n_candidates);

/* The interface of @node in the network of @to, else the one that ssh reached, "" = not known. */
const char *master_addr_iface(const struct hello *node, const struct master_addr *to);
/* "10.8.0.0/16", a network in which both nodes have an address and that is not @but; "" = none. */
void master_addr_other_network(char *to, size_t size, const struct hello *a, const struct hello *b,
                               const struct master_addr *but);
bool master_addr_is_numeric(const char *addr);
