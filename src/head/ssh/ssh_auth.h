/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh auth: authenticates a session with the methods of the target
 *
 * Order: the keys of the target, certificates first, then the ssh-agent, then GSSAPI if the config
 * allows it. The user is never asked. For the session's thread only.
 */
#pragma once

#include <libssh/libssh.h>

#include "head/ssh/ssh_target.h"

struct ssh_auth {
        const struct ssh_target *target;
        size_t next; /* of target->offers */
        bool agent_tried, gssapi_tried;
        bool agent_filtered; /* libssh has a socket of ssh_agent_keys_filter() */
        bool partly;         /* a method succeeded and the server requires another */
        bool lost;           /* the connection ended before the first refusal */
        bool broken;         /* ... because of a packet that does not belong there */
        int methods;         /* SSH_AUTH_METHOD_* named by the server */
        char error[160];     /* libssh's error other than a refusal */
};

/* Continues the login: SSH_AUTH_SUCCESS, SSH_AUTH_AGAIN (call again after the next packet), or
 * SSH_AUTH_DENIED after the last method. @auth starts zeroed but for the target. */
int ssh_auth_step(struct ssh_auth *auth, ssh_session session);

/* Fills in cause (LINK_DENIED, or LINK_DROPPED: closed without a decision), fact, evidence and help
 * after SSH_AUTH_DENIED. Asks the agent for a list of keys. */
void ssh_auth_explain(const struct ssh_auth *auth, struct link_failure *why);
