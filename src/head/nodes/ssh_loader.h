/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh loader: loads the ssh transport when there is a node to reach
 *
 * libssh and the libraries behind cost the dynamic linker more than all the rest of a launch. So
 * the transport is a shared object, hnlaunch-ssh.so (see head/nodes/install_paths.h), which a
 * launch on this machine never loads.
 */
#pragma once

#include "head/nodes/host_key.h"
#include "head/nodes/transport.h"
#include "head/nodes/tree_login.h"

/* Loads the module, which stays loaded, and calls transport_ssh_create(). NULL with @err: the
 * errors of that function; ELIBACC: the module is not installed or cannot be loaded (as a rule
 * because a library is missing). */
struct transport *ssh_loader_create(uv_loop_t *loop, const struct ssh_options *o,
                                    struct error *err);

/* Whether a login to @host would lead to another account, port or way than a login to this machine:
 * by @o or the ssh config. @ret_name: HostName of the config, malloc'ed. False without the
 * module. */
bool ssh_loader_leads_elsewhere(const struct ssh_options *o, const char *host, char **ret_name);
/* Calls host_key_store() of the module. */
int ssh_loader_store_key(const struct link_host_key *key, struct error *err);
/* Returns the module's tree_login_ops; the same errors. */
const struct tree_login_ops *ssh_loader_tree_login(struct error *err);
