/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh module: the ssh transport, loaded when there is a node to reach
 *
 * libssh and the libraries behind it are more work for the dynamic linker than all the rest of a
 * launch. So the transport is a shared object of its own, hnlaunch-ssh.so
 * (head/nodes/install_paths.h says where), and a launch on this machine never sees it.
 */
#pragma once

#include "head/nodes/transport.h"
#include "head/nodes/tree_login.h"

/* transport_ssh_create() of the module. NULL: its errors, -ENOENT for a module that is not
 * installed, -ELIBACC for one that cannot be loaded (as a rule a library that it needs is missing).
 * A module stays loaded. */
struct transport *ssh_loader_create(uv_loop_t *loop, const struct ssh_options *o,
                                    struct error *err);

/* The module's tree_login_ops; the same errors. */
const struct tree_login_ops *ssh_loader_tree_login(struct error *err);
