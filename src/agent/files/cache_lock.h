/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stash_lock: ROOT/ID.lock, which all jobs share that use the folder ROOT/ID
 *
 * Whoever removes the folder holds the lock alone, and removes it last: a descriptor of one that
 * was removed is worth nothing.
 */
#pragma once

#include <stdbool.h>

/* Waits while somebody removes the folder. 0 with a descriptor; -errno: -EAGAIN, for seconds;
 * -ENOLCK and others where the file system has no locks. */
int cache_lock_share(const char *root, const char *id, int *ret_fd);
/* True when nobody else uses the folder. Our own share is given up either way. */
bool cache_lock_alone(int fd, const char *root, const char *id);
