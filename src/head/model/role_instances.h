/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role_instances: the ranks of a plan that are instances of roles (head/model/role_book.h)
 *
 * The node of a world reserves the ports of the instances that it has there, in the order of
 * plan_node.ranks, those of an instance in the order of role_book_ports(). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct plan;
struct role_book;

/* Returns the rank that is the instance of @rank: itself, or rank 0 of its replica. */
int role_instance_of(const struct role_book *b, const struct plan *p, int rank);
/* Returns the number of ports that the node reserves for instances of a world. */
size_t role_instances_count_ports(const struct role_book *b, const struct plan *p, size_t node,
                                  int world);
/* Returns the place of the first port of @rank, an instance, among those of its world on its node.
 */
size_t role_instance_first_port(const struct role_book *b, const struct plan *p, int rank);
