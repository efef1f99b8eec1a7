/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Master: the address at which the other ranks reach rank 0's node (MASTER_ADDR)
 *
 * Numeric whenever possible. In this order: 127.0.0.1 when the whole job is on one node; addr= of
 * the hostfile; the address on the interface or network of iface= or --iface; the address at which
 * ssh reached the node; its first IPv4 address; its first address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "head/hosts.h"
#include "wire/msg.h"

/* @iface is a name ("ib0") or a network ("10.8.0.0/16"), NULL = none. 0, or -EADDRNOTAVAIL when the
 * node has no address there. */
int master_choose(char *to, size_t size, const struct host *host, const struct hello *node,
                  const char *iface, bool one_node, struct error *err);
