/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order_binding: how the ranks of an order are bound, and whether the kernel has agreed
 *
 * Nothing is read for ranks without GPUs, unless the user has given --bind.
 */
#pragma once

#include <stdbool.h>

#include "agent/bind/binding.h"
#include "agent/bind/near_nics.h"
#include "base/strv.h"
#include "wire/bind_msg.h"
#include "wire/helper/gpu_record.h"
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
        bool warned_of_nics;
        /* Asks the driver for facts about the GPUs, which may take seconds; false = it does not
         * tell. Called once, for a GPU whose node sysfs does not know. */
        bool (*ask_driver)(struct gpu_holders *ret);
        struct gpu_holders *driver; /* NULL = not asked */
};

/* Makes the query of an order, with the environment @env of all ranks. Texts and GPUs are borrowed;
 * the caller frees the two arrays. */
struct bind_query order_binding_ask(const struct launch_order *l, const struct strv *env);
/* Finds the bindings of the ranks of @q. @tells: logs them, else the reasons are kept. NULL = there
 * is nothing to bind; of an order also if no rank is bound. */
struct order_binding *order_binding_create(const struct bind_query *q, struct binding_node *node,
                                           bool tells);
/* Fills in the answer to @q, from bindings made with @tells false, and @nics; the caller calls
 * bound_finish(). */
void order_binding_describe(const struct order_binding *b, const struct near_nics *nics,
                            const struct bind_query *q, struct bound *to);
/* The ranks have ended, and others of the attempt may take the cores of @b; NULL is fine. */
void order_binding_release(const struct order_binding *b, struct binding_node *node);
void order_binding_destroy(struct order_binding *b); /* NULL is fine */

/* By place in l->ranks. NULL = the rank is not bound; @b may be NULL. */
const struct binding *order_binding_get(const struct order_binding *b, uint32_t i,
                                        struct bind_note **ret_note);
/* In the process of the rank: binds itself. Async-signal-safe. */
void order_binding_enter(const struct binding *b, struct bind_note *note);
/* Warns once if the kernel has refused a binding of a started rank. */
void order_binding_check(struct order_binding *b);
