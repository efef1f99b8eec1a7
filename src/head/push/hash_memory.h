/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash memory: SHA-256 of files read before
 *
 * ${XDG_CACHE_HOME:-~/.cache}/hnlaunch/hashes knows a file by device, inode, size and both times. A
 * file changed within the last seconds before the read is not remembered: a second change could
 * leave all of these as before. The memory is written as a whole, by rename. A damaged memory
 * counts as empty, and a failed write is no error. Of two runs at once each may lose additions of
 * the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/push_msg.h"

struct hash_memory;
struct stat;

struct hash_key {
        uint64_t dev, ino, size;
        int64_t mtime_ns, ctime_ns;
        uint32_t stamp; /* manifest_source.key */
};

struct hash_memory *hash_memory_open(void);
/* False: not known. @ret_stamped: as added. */
bool hash_memory_find(struct hash_memory *m, const struct hash_key *key,
                      unsigned char sha[PUSH_SHA], bool *ret_stamped);
void hash_memory_add(struct hash_memory *m, const struct hash_key *key,
                     const unsigned char sha[PUSH_SHA], bool stamped);
/* Writes the additions, and frees all. NULL is fine. */
void hash_memory_close(struct hash_memory *m);

/* --- keys and places, also for other memories --- */

struct hash_key hash_memory_key(const struct stat *st); /* without a stamp */
bool hash_memory_same(const struct hash_key *a, const struct hash_key *b);
/* Returns the time up to which changes are old enough to be remembered. */
int64_t hash_memory_young(void);
/* Makes the folder of memories, and returns the path of @name there, malloc'ed; NULL = no place for
 * memories. */
char *hash_memory_place(const char *name);
