/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh agent filter: the user's ssh-agent, reduced to some of its keys
 *
 * libssh offers every key that an agent lists. For IdentitiesOnly it gets the end of a socketpair
 * instead; a thread at the other end passes its requests on and drops the other keys of the list.
 */
#pragma once

#include "head/ssh/files/key_blob.h"

/* Connects to the agent at @path and returns a blocking descriptor, close-on-exec, that answers as
 * the agent would if it had only @keys, and certificates of them, which are copied. Closing the
 * descriptor ends the thread. A negative errno on failure. */
int ssh_agent_filter_open(const char *path, const struct key_blob *keys, size_t n);
