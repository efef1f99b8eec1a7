/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree login: the data for a node's own ssh to reach another node (--tree)
 *
 * Name, port, login and algorithms come from this machine's ssh config, host keys from known_hosts
 * files here; everything else, above all the keys to log in with, is the node's own. Main loop's
 * thread only.
 */
#pragma once

#include "head/nodes/transport.h"
#include "wire/tree_msg.h"

struct tree_login;

struct tree_login_ops {
        /* Reads the ssh config. @o is borrowed. NULL with @err: the config or --ssh-command is
         * unusable. */
        struct tree_login *(*create)(const struct ssh_options *o, struct error *err);
        void (*free)(struct tree_login *d); /* NULL does nothing */
        /* Fills in an order for the agent, which child_agent_order_finish() frees. A negative
         * errno: the ssh config is unusable for this host, HN_SSH_CONFIG_LINE, or the host keys
         * cannot be checked, HN_HOST_KEY_UNCHECKED. */
        int (*find)(struct tree_login *d, const struct link_target *to,
                    struct child_agent_order *ret, struct error *err);
};

/* In the ssh module; ssh_loader.c looks this symbol up by name. */
PUBLIC extern const struct tree_login_ops tree_login_ops;
