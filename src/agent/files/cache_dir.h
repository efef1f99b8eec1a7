/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stash_place: the folders of this node where pushed files may be kept
 *
 * In this order: ${XDG_CACHE_HOME:-~/.cache}/hnlaunch, /var/tmp/hnlaunch-UID, then the ones in
 * memory, ${XDG_RUNTIME_DIR:-/run/user/UID}/hnlaunch and /dev/shm/hnlaunch-UID.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

enum { FILE_CACHE_PLACES = 4, FILE_CACHE_ID = 32 /* hex digits of a folder's name */ };

/* A malloc'ed path; NULL: there is no such place. */
char *cache_dir(int i);
/* Makes @folder/push ready and proves that it takes files, hard links and locks; nothing is written
 * where the folder is not our own. 0 with a malloc'ed @ret_root; negative errno with @ret.
 * @program: it must not be noexec. @who becomes part of names: nobody else who looks for a place at
 * this time has the same. */
int cache_dir_open(const char *folder, bool program, const char *who, char **ret_root,
                   struct pushed *ret);

/* Removes ROOT/@id unless it is kept: what was pushed, and the contents that nobody has any more,
 * and half-fetched files of @run_id. Files of others stay, with their folders. True when the folder
 * is gone. The caller holds the lock alone, or there is none. */
bool cache_remove(const char *root, const char *id, const char *run_id);
/* The same for whoever finds its owner dead: nothing happens while others use the folder. */
void file_cache_abandoned(const char *root, const char *id, const char *run_id);
