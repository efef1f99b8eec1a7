/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order_binding: how the ranks of an order are bound, and whether the kernel has agreed
 *
 * Nothing is read for ranks without GPUs, unless the user has given --bind.
 */
#pragma once

#include <stdbool.h>

#include "agent/bind/binding.h"
#include "base/strv.h"
#include "wire/msg.h"

/* Shared with the rank's process before exec: errors of the two system calls, 0 = none. */
struct bind_note {
        int cpus, memory;
};

struct order_binding;

/* What the orders of an attempt have in common. */
struct binding_node {
        struct strv gpus;       /* PCI addresses by index; "" = not known */
        struct cpu_mask *taken; /* of binding_make(); NULL = empty */
};

/* Finds the bindings of the ranks of @l with the environment @env, and logs them; @alone: no other
 * order has ranks on this node. NULL = no rank is bound. */
struct order_binding *order_binding_create(const struct launch_order *l, const struct strv *env,
                                           struct binding_node *node, bool alone);
void order_binding_destroy(struct order_binding *b); /* NULL is fine */

/* By place in l->ranks. NULL = the rank is not bound; @b may be NULL. */
const struct binding *order_binding_get(const struct order_binding *b, uint32_t i,
                                        struct bind_note **ret_note);
/* In the process of the rank: binds itself. Async-signal-safe. */
void order_binding_enter(const struct binding *b, struct bind_note *note);
/* Warns once if the kernel has refused a binding of a started rank. */
void order_binding_check(struct order_binding *b);
