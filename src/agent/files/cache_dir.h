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

/* Removes ROOT/@id unless kept: pushed files, contents that no other folder uses, and half-fetched
 * files of @run_id. Files of ranks stay, with their folders. True when the folder is gone. The
 * caller holds the lock exclusively, or there is none. */
bool cache_remove(const char *root, const char *id, const char *run_id);
/* The same after the death of the owner: does nothing while other jobs use the folder. */
void file_cache_abandoned(const char *root, const char *id, const char *run_id);
