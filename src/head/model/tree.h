/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree: which node carries which (--tree K)
 *
 * The head opens ssh to at most K nodes, each of these to at most K more, and so on. The nodes
 * behind a node follow it in the list, so that what is lost with it is one range of hosts, and the
 * subtrees of a node differ by one node at most. Pure.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"

enum { TREE_HEAD = -1 };

/* Writes each of @n nodes' parent, always an earlier node, or TREE_HEAD. @k >= 1. */
void tree_plan(size_t n, size_t k, int *parent);
/* The same for @hosts, by their index; malloc'ed. Hosts of this machine and spare hosts carry
 * nobody and have TREE_HEAD. */
int *tree_of_hosts(const struct hosts *hosts, size_t k);
