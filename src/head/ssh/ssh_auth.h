/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh auth: shows a session's server who the user is
 *
 * Offers the keys of the target, certificates first, then the ssh-agent, then GSSAPI where the
 * config allows it. Never asks anybody anything. Belongs to the session's thread.
 */
#pragma once

#include <libssh/libssh.h>

#include "head/ssh/ssh_target.h"

struct ssh_auth {
        const struct ssh_target *target;
        size_t next; /* of target->offers */
        bool agent_tried, gssapi_tried;
        bool partly;     /* the server took something and wants more */
        bool lost;       /* it was gone before it had said no to anything */
        int methods;     /* SSH_AUTH_METHOD_* that the server named */
        char error[160]; /* what ended it, when it was not a plain no */
};

/* SSH_AUTH_SUCCESS, SSH_AUTH_AGAIN (call again when the session has news), or SSH_AUTH_DENIED when
 * nothing is left. @auth starts zeroed but for the target. */
int ssh_auth_step(struct ssh_auth *auth, ssh_session session);

/* Fills in cause (LINK_DENIED, or LINK_DROPPED: it came to no decision), fact, evidence and help
 * after SSH_AUTH_DENIED. Asks the agent for its keys. */
void ssh_auth_explain(const struct ssh_auth *auth, struct link_failure *why);
