/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh agent: a connection to the user's ssh-agent, at the socket named by SSH_AUTH_SOCK
 */
#pragma once

#include "base/error.h"

/* Returns a connection, non-blocking and close-on-exec, which the caller closes. -ENOENT: the
 * variable is not set; any other negative errno: no connection within a second. Both with @err. */
int ssh_agent_connect(struct error *err);

/* Connects to the agent's socket @path. The descriptor is close-on-exec and blocking, with @wait_s
 * as the limit for the connection, each read and each write. A negative errno on failure. */
int ssh_agent_open(const char *path, int wait_s);
