/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache_dir: the folders of this node where pushed and staged files may be kept
 *
 * hnlaunch-stage-UID, in this order below $HNLAUNCH_STAGE_DIR, /tmp, /var/tmp,
 * ${XDG_CACHE_HOME:-~/.cache}/hnlaunch, then two in memory, ${XDG_RUNTIME_DIR:-/run/user/UID} and
 * /dev/shm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

enum { FILE_CACHE_PLACES = 6, FILE_CACHE_ID = 32 /* hex digits of a folder's name */ };

/* Returns the malloc'ed path of root @i; NULL: none on this node. The folder named by
 * HNLAUNCH_STAGE_DIR may be missing, but its parent must exist. */
char *cache_dir(int i);
/* Logs once for -v that HNLAUNCH_STAGE_DIR, root 0, is not used, and why. */
void cache_dir_pass_over(const char *why);
/* Makes @root ready, for this user alone, and proves that files, hard links and locks work there;
 * no file is written in a folder of another user. 0; negative errno with @ret. @program: must not
 * be noexec. @who becomes part of names and must be unique among simultaneous callers. */
int cache_dir_open(const char *root, bool program, const char *who, struct pushed *ret);
/* Whether @root is a folder of this user, no link, and, with @program, not noexec. */
bool cache_dir_is_usable(const char *root, bool program);

/* Shares ROOT/ID.lock among all jobs that use the folder ROOT/ID. To remove the folder, a job takes
 * the lock exclusively, and removes the lock file last: a descriptor of a removed file is
 * worthless. Waits while another job removes the folder. 0 with a descriptor; -errno: -EAGAIN after
 * some seconds; -ENOLCK and others where the file system has no locks. */
int cache_lock_share(const char *root, const char *id, int *ret_fd);
/* Takes the lock for this job alone. 0; -EAGAIN: other jobs use the folder; another -errno. Our own
 * share is given up in any case. */
int cache_lock_alone(int fd, const char *root, const char *id);

/* Marks the files written by an agent below ROOT: ROOT/.WHO.lock is locked while the agent lives, a
 * tree is unpacked in ROOT/.WHO.USE, a file in ROOT/file/.WHO. 0 with a descriptor, or -errno. */
int cache_owner_lock(const char *root, const char *who, int *ret_fd);
/* Closes the descriptor, unless it is -1, and removes the file if no other has the lock. 0, or the
 * errno of the removal. */
int cache_owner_unlock(const char *root, const char *who, int *fd);
/* Locks the folder @root until the descriptor is closed, or returns -1. systemd-tmpfiles, which
 * removes old files from /tmp, leaves locked folders alone: tmpfiles.d(5), "Age". */
int cache_root_lock(const char *root);
/* Removes the remains of agents killed together with their guards. */
void cache_sweep_dead(const char *root);

/* Entries left by a removal; all 0 = none. */
struct cache_left {
        bool foreign; /* files of ranks */
        bool pulled;  /* --pull has sent files of ranks */
        int error;    /* errno of the first entry that cannot be read or removed */
};

/* Adds @error unless an earlier error is there; ENOENT and 0 do not count. */
void cache_left_add(struct cache_left *left, int error);
/* Returns a malloc'ed sentence about the remaining entries, with place and reason; NULL = nothing
 * is left. */
char *cache_left_text(const struct cache_left *left, const char *root, const char *id);

/* Removes ROOT/@id unless kept: pushed files, contents without a link in another folder, and
 * half-fetched files of @run_id. Files of ranks stay, with their folders. Adds remaining entries to
 * @left. The caller holds the lock exclusively, or no lock exists. */
void cache_remove(const char *root, const char *id, const char *run_id, struct cache_left *left);
/* Removes a half-unpacked tree. */
void cache_remove_unfinished(const char *root, const char *name, struct cache_left *left);
/* Removes a kept folder ROOT/@id, with compiled Python of the ranks. False: a job uses the folder,
 * or ranks have written other files there; then nothing has changed. */
bool cache_remove_kept(const char *root, const char *id);
/* Gives the tree ROOT/@name the name of the kept folder ROOT/@id, which is removed. 0 or -errno. */
int cache_replace_kept(const char *root, const char *id, const char *name);
/* Counts pushed files and links below ROOT/@id. */
void cache_count(const char *root, const char *id, uint64_t *ret_files, uint64_t *ret_links);
/* As cache_remove() after the death of the owner: does nothing while other jobs use the folder.
 * Returns the sentence of cache_left_text(), or NULL. */
char *file_cache_abandoned(const char *root, const char *id, const char *run_id);
