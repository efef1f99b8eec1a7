/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stash: where pushed files are kept on this node
 *
 *   ROOT/file/SHA256.MODE   each content once, read-only
 *   ROOT/ID/...             the folder as it was offered: hard links to those; ranks start here
 *   ROOT/ID.lock            shared by every job that uses the folder
 *   ROOT/ID.keep            --keep: the folder stays when nobody uses it
 *   ROOT/ID.RUN             who of that run fetches into this ROOT: its node
 *
 * ROOT is hnlaunch/push in the first of the cache folders that takes it: writable, ours, with room,
 * with hard links and locks, and not noexec if a program is pushed. ID is the SHA-256 of the
 * manifest, cut.
 *
 * A content gets its name only when its hash is right, and its time is then set to FILE_CACHE_TIME:
 * one of the right size, mode and time is taken as it is, any other is fetched anew. There is no
 * list and no other lock: a content whose only link is the one in ROOT/file is nobody's. Whoever
 * links it while somebody takes it away fetches it, or has the last link and gives it its name
 * again.
 *
 * Several nodes may share ROOT. The first of a run to claim it fetches, the others are told who
 * (file_cache_look).
 *
 * Calls block for as long as the file system does. Failures are struct pushed, made for the head.
 */
#pragma once

#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>

#include "agent/files/cache_dir.h"
#include "wire/push_msg.h"

#define FILE_CACHE_TIME                                                                            \
        946684800 /* 2000-01-01: zip, make and Python's caches are content with it */

enum { FILE_CACHE_SHARED = 1 };

struct file_cache {
        struct push_offer offer;
        char id[FILE_CACHE_ID + 1];
        char *root, *tree; /* NULL = no place found yet */
        int lock;
        char *claim;       /* we fetch; NULL = not */
        uint32_t *missing; /* entries to be fetched */
        uint32_t n_missing, at;
        /* the one that is being fetched */
        int fd;
        char *temp;
        uint64_t got;
        crypto_hash_sha256_state hash;
};

#define FILE_CACHE_INIT                                                                            \
        {                                                                                          \
                .lock = -1, .fd = -1                                                               \
        }

/* Takes over what @offer owns; the stash must be fresh. */
void file_cache_offer(struct file_cache *s, struct push_offer *offer);
/* Finds the place, links what is there already, and lists what is missing. 0; FILE_CACHE_SHARED:
 * another node of the run fetches into the same folder, @ret_holder; negative errno with @ret.
 * @take_over: fetch though somebody has claimed it. */
int file_cache_look(struct file_cache *s, bool take_over, uint32_t *ret_holder, struct pushed *ret);
/* The next piece of the first missing file. 0; negative errno with @ret: -EBADMSG, wrong hash. */
int file_cache_put(struct file_cache *s, const struct push_chunk *c, struct pushed *ret);
/* Bytes of a file that is here, or of the part of it that is. 0, or negative errno with @ret. */
int file_cache_read(const struct file_cache *s, uint32_t entry, uint64_t offset, void *to,
                    size_t len, struct pushed *ret);
/* True when nothing is missing. */
bool file_cache_complete(const struct file_cache *s);
/* Makes the folder whole: every link in place. 0, or negative errno with @ret. */
int file_cache_finish(struct file_cache *s, struct pushed *ret);
/* Removes the folder unless it is kept or in use, and frees all. Files that are not of the offer
 * stay, with the folders around them: *@ret_left (may be NULL) is then a malloc'ed path, else NULL.
 */
void file_cache_close(struct file_cache *s, char **ret_left);
