/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compat_nodes: the facts about nodes for --compat, from the plan to the agents
 *
 * Pure.
 */
#pragma once

#include "head/hosts/hosts.h"
#include "head/model/plan.h"
#include "wire/msg.h"

/* Fills in @to, which is zeroed, for @family (enum compat_family): the used nodes of @p by node
 * rank where the family has variables about nodes. Free with launch_compat_finish(). */
void compat_nodes_fill(struct launch_compat *to, unsigned family, const struct plan *p,
                       const struct plan_world *world, const struct hosts *hosts);

/* Returns the length of the longest variable of @family in any world, in bytes; more than
 * COMPAT_VARIABLE_MAX cannot be passed to a program (MAX_ARG_STRLEN of execve(2), less the name).
 * @ret_nodes: the number of nodes in that variable. */
enum { COMPAT_VARIABLE_MAX = (128 << 10) - 32 };
size_t compat_nodes_longest(unsigned family, const struct plan *p, const struct hosts *hosts,
                            int *ret_nodes);
