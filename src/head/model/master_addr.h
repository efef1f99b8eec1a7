/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Master addr: the addresses at which the other ranks may reach rank 0's node (MASTER_ADDR)
 *
 * Pure but for the name of addr=, which is looked up here, with the user's resolver. The order of
 * candidates is a guess, tested later by probes from the other nodes (head/job/job_endpoint.c).
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
        char addr[64];  /* numeric, or the name of an addr= that does not resolve */
        char iface[16]; /* of rank 0's node, "" = not an address of the node */
        uint32_t prefix;
};

/* Best first. */
struct master_addr_list {
        struct master_addr v[MASTER_ADDR_MAX];
        size_t n;
        bool given; /* addr= or an interface restricted the list */
};

/*
 * Lists addr= of the hostfile alone, else the addresses of @nodes[0] in this order: the address
 * reached by ssh; addresses in a network shared by all @n_nodes; the rest; networks of containers
 * and addresses that another node has, too. IPv4 comes before IPv6, then the kernel's order.
 * Loopback and link-local addresses are left out, unless there is nothing else. iface= of the host,
 * else @iface, a name ("ib0") or a network ("10.8.0.0/16"), keeps only addresses there; may be
 * NULL. Overwrites @to. 0, or -EADDRNOTAVAIL when no address is left.
 */
int master_addr_candidates(struct master_addr_list *to, const struct host *host,
                           const struct hello *const *nodes, size_t n_nodes, const char *iface,
                           struct error *err);

/* Returns the first candidate reached by all @n nodes, -1 = none. Each @v has a result per
 * candidate; NULL reached none. */
int master_addr_pick(const struct probed *const *v, size_t n, size_t n_candidates);
/* Returns the candidate reached by most nodes, for a message about the others. */
int master_addr_nearest(const struct probed *const *v, size_t n, size_t n_candidates);

/* Returns the interface of @node in the network of @to, else that of the ssh address, "" = unknown.
 */
const char *master_addr_iface(const struct hello *node, const struct master_addr *to);
/* Writes a network of both nodes other than that of @but, "10.8.0.0/16"; "" = none. */
void master_addr_other_network(char *to, size_t size, const struct hello *a, const struct hello *b,
                               const struct master_addr *but);
bool master_addr_is_numeric(const char *addr);
/* Whether a numeric address is one of the node, or that at which ssh has reached it. */
bool master_addr_is_own(const struct hello *node, const char *addr);
