/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh hostkey: a session with the target's algorithms, and the check of the host key
 */
#pragma once

#include <libssh/libssh.h>

#include "head/nodes/host_key.h"
#include "head/ssh/ssh_target.h"

/* Returns a non-blocking session on the connected socket @fd, with algorithms set and libssh's own
 * reading of config and known_hosts switched off. The caller keeps @fd. NULL with @err. */
ssh_session ssh_hostkey_session(const struct ssh_target *target, int fd, struct error *err);

/* Checks the host key after the key exchange, before authentication. 0: the key is known, or was
 * accepted by --host-key accept-new; -1 with @why filled in. @ret_stored gets "HOST TYPE PRINT
 * FILE:LINE" of an accepted key, else "". */
int ssh_hostkey_check(struct ssh_site *site, const struct ssh_target *target, ssh_session session,
                      char *ret_stored, size_t size, struct link_failure *why);

/* Reads the host key after the key exchange; free(). NULL with @why filled in: the key has changed
 * or is revoked, or could not be stored. */
struct link_host_key *ssh_hostkey_fetch(const struct ssh_target *target, ssh_session session,
                                        struct link_failure *why);
