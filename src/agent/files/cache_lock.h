/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache_lock: ROOT/ID.lock, shared by all jobs that use the folder ROOT/ID
 *
 * A job that removes the folder holds the lock exclusively, and removes the lock file last: a
 * descriptor of a removed file is worthless.
 */
#pragma once

#include <stdbool.h>

/* Waits while another job removes the folder. 0 with a descriptor; -errno: -EAGAIN after some
 * seconds; -ENOLCK and others where the file system has no locks. */
int cache_lock_share(const char *root, const char *id, int *ret_fd);
/* True when no other job uses the folder. Our own share is given up in any case. */
bool cache_lock_alone(int fd, const char *root, const char *id);
