/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directions: what a node needs to know so that its own ssh reaches another node (--tree)
 *
 * Name, port and login are what this machine's ssh config makes of the host, host keys are those
 * that this machine knows; everything else, keys to log in with above all, is the node's own.
 * Main loop's thread only.
 */
#pragma once

#include "head/nodes/transport.h"
#include "wire/tree_msg.h"

struct tree_login;

struct tree_login_ops {
        /* NULL with @err: the ssh config or --ssh-command cannot be used. @o is borrowed. */
        struct tree_login *(*create)(const struct ssh_options *o, struct error *err);
        void (*free)(struct tree_login *d); /* NULL is fine */
        /* 0 with an order for the agent, which child_agent_order_finish() frees; or a negative
         * errno: the ssh config cannot be used for this host. */
        int (*find)(struct tree_login *d, const struct link_target *to,
                    struct child_agent_order *ret, struct error *err);
};

/* In the ssh module, see head/nodes/ssh_loader.h. */
PUBLIC extern const struct tree_login_ops tree_login_ops;
