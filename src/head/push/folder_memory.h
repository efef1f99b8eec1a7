/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder memory: files and folders as an earlier launch has listed and hashed them
 *
 * ${XDG_CACHE_HOME:-~/.cache}/hnlaunch/folders has a file for each of the last manifests: every
 * folder, file and link with times, the hashes, and the hash of the manifest. While each folder and
 * file has the same inode, rights, size and times, the list is still right: no folder is read,
 * nothing is sorted, and nothing is hashed. Only the kind of a link is compared: the target is
 * resolved again, since the result may depend on files outside.
 *
 * A folder with changes within the last seconds is not remembered, as in hash_memory.h. A damaged
 * memory counts as empty, and a failed write is no error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/push/hash_memory.h"
#include "wire/push_msg.h"

struct folder_memory;

/* How an entry is compared with the disk. */
enum folder_look {
        FOLDER_LOOK,        /* the entry; a link is not followed */
        FOLDER_LOOK_BEHIND, /* named by the user: a link is followed */
        FOLDER_LOOK_RIGHTS, /* above a sent path: as behind, and the rights alone */
};

/* An entry, as in the file. */
struct folder_entry {
        struct hash_key key;    /* of the source */
        uint64_t size;          /* of the sent bytes */
        uint32_t mode;          /* of the source, with the type; of a link only the type counts */
        uint32_t place, target; /* folder_memory_text(); target 0 = none */
        uint32_t path, top;     /* of the source, 0 = the place below the folder; of the argument */
        uint16_t rights;        /* sent rights, as kind is the sent kind */
        uint8_t kind;           /* enum push_kind */
        uint8_t stamped, edited; /* edited: the sent bytes differ from the file's */
        uint8_t look;            /* enum folder_look */
        unsigned char sha[PUSH_SHA];
};

/* The hash of a manifest. */
struct folder_sum {
        unsigned char sha[PUSH_SHA];
        uint64_t wire_bytes;
};

/* Opens the memory of the folder @dir, an absolute path. @what = NULL: the whole folder is sent;
 * else a text that identifies the sent part. Never NULL. */
struct folder_memory *folder_memory_open(const char *dir, const char *what);
/* Compares the remembered entries with the disk, and the folder if the entries depend on the
 * folder, in several threads. False: a difference, or nothing is remembered. */
bool folder_memory_is_true(struct folder_memory *m);

/* The entries, sorted by place, and the texts added with the entries. */
uint32_t folder_memory_entries(const struct folder_memory *m);
const struct folder_entry *folder_memory_entry(const struct folder_memory *m, uint32_t i);
const char *folder_memory_text(const struct folder_memory *m, uint32_t at);
/* Whether folder_memory_text() lends this text, from the memory as opened. */
bool folder_memory_has(const struct folder_memory *m, const char *text);
const struct folder_sum *folder_memory_sum(const struct folder_memory *m);

/* Whether the entry sent now, of the same place, equals the remembered entry. */
bool folder_memory_is_sent(const struct folder_memory *m, uint32_t i, const struct push_entry *now);

/* The source of an entry: its path, NULL = as folder_entry.path 0; the place of the argument. */
struct folder_source {
        const char *path, *top;
};

/* Forgets all entries. New entries are added in order, before folder_memory_save(): @e has key,
 * mode, look, stamped and edited of the source; @sent and @from have all else. @whole: the entries
 * depend on the entries of the folder itself. */
void folder_memory_begin(struct folder_memory *m, const struct folder_sum *sum, bool whole);
void folder_memory_add(struct folder_memory *m, const struct folder_entry *e,
                       const struct push_entry *sent, const struct folder_source *from);

/* The hash of the environment's Python. False: the memory has another Python, or none. */
bool folder_memory_find_python(const struct folder_memory *m, const struct hash_key *key,
                               unsigned char sha[PUSH_SHA]);
void folder_memory_set_python(struct folder_memory *m, const struct hash_key *key,
                              const unsigned char sha[PUSH_SHA]);

/* Writes changes, and forgets the entries; texts stay lent. NULL is fine. */
void folder_memory_save(struct folder_memory *m);
void folder_memory_close(struct folder_memory *m); /* NULL is fine */
