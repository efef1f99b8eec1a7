/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File_cache: pushed and staged files on this node
 *
 *   ROOT/file/SHA256.MODE   each content once, read-only
 *   ROOT/ID/...             the offered folder: hard links to contents
 *   ROOT/ID.lock            shared by every job that uses the folder
 *   ROOT/ID.keep            the folder stays when unused: --push-keep, and what is staged
 *   ROOT/ID.RUN             claim: the node of that run that fetches into this ROOT
 *   ROOT/.WHO.*, .WHO.lock  folders being unpacked by a node of a run, and its lock
 *
 * ROOT is the first folder of cache_dir() that is writable, ours, large enough, supports hard links
 * and locks, and is not noexec if a program is among the files. ID is the beginning of the
 * manifest's SHA-256.
 *
 * Ranks start in a pushed folder and may write there, so each use compares all files. A staged
 * folder is read-only, and unpacked under another name: one with the final name is whole.
 *
 * A content gets a name only after the hash was verified, and then the time FILE_CACHE_TIME: a
 * content of the right size, mode and time is used as is, any other is fetched anew. There is no
 * list and no other lock: a content without a link outside of ROOT/file is unused. When a node
 * links a content while another removes the content, the first node fetches the content, or holds
 * the last link and restores the name.
 *
 * Several nodes may share ROOT. The first node of a run to claim it fetches; the others learn its
 * number (file_cache_look).
 *
 * Calls block for as long as the file system does. Failures are struct pushed, made for the head.
 */
#pragma once

#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>

#include "agent/files/cache_dir.h"
#include "wire/push_msg.h"

#define FILE_CACHE_TIME PUSH_FILE_TIME

enum { FILE_CACHE_SHARED = 1, FILE_CACHE_UNKNOWN };

struct file_cache {
        struct push_offer offer;
        char id[FILE_CACHE_ID + 1];
        char *root, *tree; /* NULL = no place found yet */
        bool whole;        /* a staged folder with the final name */
        int lock, owner, root_lock;
        char *claim; /* this node fetches; NULL = another does */
        bool pulled; /* --pull has sent files of ranks */
        char *left;  /* remains of a place given up, which could not be removed; NULL = nothing */
        uint32_t *missing; /* entries to be fetched */
        uint32_t n_missing, at;
        /* the file being fetched */
        int fd;
        char *temp;
        uint64_t got;
        crypto_hash_sha256_state hash;
};

#define FILE_CACHE_INIT                                                                            \
        {                                                                                          \
                .lock = -1, .owner = -1, .root_lock = -1, .fd = -1                                 \
        }

/* Bytes of a file. */
struct push_chunk {
        uint32_t entry;
        uint64_t offset;
        const unsigned char *data;
        size_t len; /* 0 only for an empty file */
};

/* Takes over the contents of @offer; the cache must be fresh, or have answered
 * FILE_CACHE_UNKNOWN. */
void file_cache_offer(struct file_cache *s, struct push_offer *offer);
/* Finds the place, links present contents, and lists missing contents. 0; FILE_CACHE_SHARED:
 * another node of the run fetches into the same folder, @ret_holder; FILE_CACHE_UNKNOWN: the
 * manifest is needed; negative errno with @ret. @take_over: fetch in spite of another node's
 * claim. */
int file_cache_look(struct file_cache *s, bool take_over, uint32_t *ret_holder, struct pushed *ret);
/* Takes the next piece of the first missing file; skips a piece of a present file. 0; negative
 * errno with @ret: -EBADMSG, wrong hash. */
int file_cache_put(struct file_cache *s, const struct push_chunk *c, struct pushed *ret);
/* True when nothing is missing. */
bool file_cache_complete(const struct file_cache *s);
/* Makes the folder whole: every link in place. 0, or negative errno with @ret. */
int file_cache_finish(struct file_cache *s, struct pushed *ret);
/* Removes the folder unless kept or in use, and frees all memory. Files of ranks stay, with their
 * folders. *@ret_left (may be NULL) is a malloc'ed sentence about remaining entries, or NULL. */
void file_cache_close(struct file_cache *s, char **ret_left);
