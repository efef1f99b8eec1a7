/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh agent keys: those of the user's ssh-agent, listed for messages, and reduced to some
 *
 * libssh offers every key that an agent lists. For IdentitiesOnly it gets the end of a socketpair
 * instead; a thread at the other end passes its requests on and drops the other keys of the list.
 */
#pragma once

#include "base/strv.h"
#include "head/ssh/files/key_line.h"

/* Asks the agent at @path for a list of keys: lines "ED25519 SHA256:... comment". Waits 3 s at
 * most. Without an answer there are none. */
void ssh_agent_keys_list(const char *path, struct strv *ret);

/* Connects to the agent at @path and returns a blocking descriptor, close-on-exec, that answers as
 * the agent would if it had only @keys, and certificates of them, which are copied. Closing the
 * descriptor ends the thread. A negative errno on failure. */
int ssh_agent_keys_filter(const char *path, const struct key_blob *keys, size_t n);
