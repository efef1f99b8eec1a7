/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Auth agent: the user's ssh-agent, at the socket that SSH_AUTH_SOCK names
 */
#pragma once

#include "base/error.h"

/* A connection to it, non-blocking and close-on-exec; the caller's. -ENOENT: the variable is not
 * set; other negative errno: nobody answers at its socket, within a second. Told in @err. */
int ssh_agent_connect(struct error *err);
