/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree: the parent of each node (--tree K)
 *
 * The head opens ssh to at most K nodes, each of them to at most K more, and so on. The descendants
 * of a node follow it in the list, so a lost subtree is a single range of hosts, and the subtrees
 * of a node differ by at most a node in size. Pure.
 */
#pragma once

#include <stddef.h>

#include "head/hosts/hosts.h"

enum { TREE_HEAD = -1 };

/* Writes the parent of each of @n nodes, always an earlier node, or TREE_HEAD. @k >= 1. */
void tree_plan(size_t n, size_t k, int *parent);
/* Returns the same for @hosts, by index; malloc'ed. Hosts of this machine and spare hosts have the
 * parent TREE_HEAD and no children. */
int *tree_of_hosts(const struct hosts *hosts, size_t k);
