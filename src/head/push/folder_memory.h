/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder memory: files and folders as an earlier launch has listed and hashed them
 *
 * ${XDG_CACHE_HOME:-~/.cache}/hnlaunch/folders has a file for each of the last manifests: every
 * folder, file and link with its times, the hashes, and the hash of the manifest. When each folder
 * and file still has the same inode, rights, size and times, the list is still right: no folder is
 * read, nothing is sorted, and nothing is hashed. Links count as links alone: where they lead is
 * looked up again, since that may depend on files outside.
 *
 * A folder with something changed within the last seconds is not remembered, as in hash_memory.h. A
 * damaged memory counts as empty, and a failed write is no error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/push/hash_memory.h"
#include "wire/push_msg.h"

struct folder_memory;

/* How an entry is compared with the disk. */
enum folder_look {
        FOLDER_LOOK,        /* itself */
        FOLDER_LOOK_BEHIND, /* named by the user: where it leads, if it is a link */
        FOLDER_LOOK_RIGHTS, /* above a path that is sent: where it leads, and the rights alone */
};

/* An entry, as in the file. */
struct folder_entry {
        struct hash_key key; /* of the source */
        uint64_t size;       /* of what is sent */
        uint32_t mode;       /* of the source, with its type, which is all that counts of a link */
        uint32_t place, target; /* folder_memory_text(); target 0 = none */
        uint32_t path, top;     /* of the source, 0 = the place below the folder; of the argument */
        uint16_t rights;        /* of what is sent, as its kind */
        uint8_t kind;           /* enum push_kind */
        uint8_t stamped, edited; /* edited: other bytes than the file's are sent */
        uint8_t look;            /* enum folder_look */
        unsigned char sha[PUSH_SHA];
};

/* The hash of a manifest. */
struct folder_sum {
        unsigned char sha[PUSH_SHA];
        uint64_t wire_bytes;
};

/* Opens the memory of what is sent of the folder @dir, an absolute path: @what = NULL, all; else a
 * text that tells it from other things sent of this folder. Never NULL. */
struct folder_memory *folder_memory_open(const char *dir, const char *what);
/* Looks at the remembered entries, and the folder if it belongs to them, in several threads. False:
 * something differs, or nothing is remembered. */
bool folder_memory_is_true(struct folder_memory *m);

/* The entries, sorted by place, and what was added with them. */
uint32_t folder_memory_entries(const struct folder_memory *m);
const struct folder_entry *folder_memory_entry(const struct folder_memory *m, uint32_t i);
const char *folder_memory_text(const struct folder_memory *m, uint32_t at);
/* Tells whether a text is lent by folder_memory_text(), of the memory as it was opened. */
bool folder_memory_has(const struct folder_memory *m, const char *text);
const struct folder_sum *folder_memory_sum(const struct folder_memory *m);

/* Tells whether the same is sent for an entry, of the same place. */
bool folder_memory_is_sent(const struct folder_memory *m, uint32_t i, const struct push_entry *now);

/* What an entry is of: the path of the source, NULL = as folder_entry.path 0; place of the
 * argument. */
struct folder_source {
        const char *path, *top;
};

/* Forgets all entries. New ones are added in their order, before folder_memory_save(); @e has of
 * the source key, mode, look and what is edited, all else is that of @sent and @from. @whole: new
 * entries of the folder itself count. */
void folder_memory_begin(struct folder_memory *m, const struct folder_sum *sum, bool whole);
void folder_memory_add(struct folder_memory *m, const struct folder_entry *e,
                       const struct push_entry *sent, const struct folder_source *from);

/* The Python of the environment. False: another one is remembered, or none. */
bool folder_memory_find_python(const struct folder_memory *m, const struct hash_key *key,
                               unsigned char sha[PUSH_SHA]);
void folder_memory_set_python(struct folder_memory *m, const struct hash_key *key,
                              const unsigned char sha[PUSH_SHA]);

/* Writes changes, and forgets the entries; texts stay lent. NULL is fine. */
void folder_memory_save(struct folder_memory *m);
void folder_memory_close(struct folder_memory *m); /* NULL is fine */
