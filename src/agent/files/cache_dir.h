/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache_dir: the folders of this node where pushed files may be kept
 *
 * In this order: ${XDG_CACHE_HOME:-~/.cache}/hnlaunch, /var/tmp/hnlaunch-UID, then two in memory,
 * ${XDG_RUNTIME_DIR:-/run/user/UID}/hnlaunch and /dev/shm/hnlaunch-UID.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

enum { FILE_CACHE_PLACES = 4, FILE_CACHE_ID = 32 /* hex digits of a folder's name */ };

/* Returns the malloc'ed path of folder @i; NULL: none on this node. */
char *cache_dir(int i);
/* Makes @folder/push ready and proves that files, hard links and locks work there; nothing is
 * written in a folder of another user. 0 with a malloc'ed @ret_root; negative errno with @ret.
 * @program: must not be noexec. @who becomes part of names and must be unique among simultaneous
 * callers. */
int cache_dir_open(const char *folder, bool program, const char *who, char **ret_root,
                   struct pushed *ret);

/* ROOT/ID.lock is shared by all jobs that use the folder ROOT/ID. A job that removes the folder
 * holds the lock exclusively, and removes the lock file last: a descriptor of a removed file is
 * worthless. Waits while another job removes the folder. 0 with a descriptor; -errno: -EAGAIN after
 * some seconds; -ENOLCK and others where the file system has no locks. */
int cache_lock_share(const char *root, const char *id, int *ret_fd);
/* Takes the lock for this job alone. 0; -EAGAIN: other jobs use the folder; another -errno. Our own
 * share is given up in any case. */
int cache_lock_alone(int fd, const char *root, const char *id);

/* What a removal has left; all 0 = nothing. */
struct cache_left {
        bool foreign; /* files of ranks */
        bool pulled;  /* --pull has sent such files */
        int error;    /* errno of the first entry that cannot be looked at or removed */
};

/* Adds @error unless an earlier error is there; ENOENT and 0 do not count. */
void cache_left_add(struct cache_left *left, int error);
/* Returns a malloc'ed sentence about the remaining entries, with place and reason; NULL = nothing
 * is left. */
char *cache_left_text(const struct cache_left *left, const char *root, const char *id);

/* Removes ROOT/@id unless kept: pushed files, contents that no other folder uses, and half-fetched
 * files of @run_id. Files of ranks stay, with their folders. Adds remaining entries to @left. The
 * caller holds the lock exclusively, or no lock exists. */
void cache_remove(const char *root, const char *id, const char *run_id, struct cache_left *left);
/* The same after the death of the owner: does nothing while other jobs use the folder. Returns the
 * sentence of cache_left_text(), or NULL. */
char *file_cache_abandoned(const char *root, const char *id, const char *run_id);
