/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest: the files sent to the nodes by --push, --stage and --venv
 *
 * A FILE or DIR of the command line keeps the place relative to the current directory; a path
 * outside lands under the last name. Folders are sent with all contents. A symbolic link stays a
 * link if it is relative and leads to a place in the same DIR; a link to a file elsewhere is sent
 * as a file. The named FILE or DIR may itself be a link: the target is sent.
 *
 * For one thread. Files are read for the hash, unless remembered, and again to be sent.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "head/push/hash_memory.h"
#include "head/term/diag.h"
#include "wire/push_msg.h"

struct folder_memory;

/* The source of an entry, as of the time of hashing. */
struct manifest_source {
        char *path;          /* absolute; NULL = the place below manifest.dir */
        struct hash_key key; /* stamp: of a .pyc, the expected time of the source; 0 = none */
        char *content;       /* sent in place of the file's bytes; NULL = the file's */
        bool stamped;        /* the time of the source is replaced by PUSH_FILE_TIME */
};

struct manifest {
        struct push_label label; /* use and limit are set by the caller, use first */
        bool here_too;           /* nodes of this machine get a copy, too; set by the caller */
        bool by_command; /* the paths are words of a command: messages name no option; likewise */
        char *dir;       /* of sources without a path: the folder, or the current directory */
        struct push_manifest manifest;   /* sorted by path */
        struct manifest_source *sources; /* per entry */
        uint32_t files;
        uint64_t bytes;      /* of all files */
        uint64_t wire_bytes; /* of the manifest */
        /* manifest_finish() closes the memory, which may lend the places of entries. The caller
         * opens the memory for manifest_pack_folder(). NULL = none. */
        struct folder_memory *memory;
        int fd; /* of the file read last, -1 = none */
        uint32_t fd_entry;
};

#define MANIFEST_INIT                                                                              \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* tick() is called while files are hashed, with the bytes done so far. @memory has hashes of files
 * without a change; NULL = no memory is used. */
struct manifest_watch {
        void (*tick)(void *ctx, uint64_t bytes);
        void *ctx;
        struct hash_memory *memory;
};

/* Changes to the contents of the folder. All functions borrow. */
struct manifest_edit {
        /* Returns the target of a link on the nodes, malloc'ed; NULL: as in a plain folder. */
        char *(*link)(void *ctx, const char *place, const char *target);
        /* Returns the contents of a file on the nodes, malloc'ed; NULL: unchanged. */
        char *(*content)(void *ctx, const char *place, uint64_t size, size_t *ret_len);
        /* Takes bytes of a file, as read for the hash. */
        void (*read)(void *ctx, const char *place, const void *data, size_t len);
        /* Takes the rights of a file. */
        void (*file)(void *ctx, const char *place, unsigned mode);
        void *ctx;
        const char *base, *base_place; /* another folder, and its place; NULL = none */
};

/* Of files for reading alone (PUSH_STAGE, PUSH_VENV), times of sources in .pyc files become
 * PUSH_FILE_TIME, or Python would compile all again on the nodes, at each start. */

/* Gathers and hashes @paths, relative to @cwd, into @p (MANIFEST_INIT), with the help of a memory.
 * 0, or -EINVAL with errors in @d (exit 66): no such file (HN230), not readable (HN231), neither
 * file nor folder nor link to a file (HN232), two files in a place (HN233), too many (HN238),
 * changed meanwhile (HN237). */
int manifest_pack(struct manifest *p, const struct strv *paths, const char *cwd,
                  const struct manifest_watch *watch, struct diags *d);
/* The same for the contents of the folder @dir, an absolute path, as changed by @edit. Uses the
 * memory p->memory of the folder, or replaces its entries. */
int manifest_pack_folder(struct manifest *p, const char *dir, const struct manifest_edit *edit,
                         const struct manifest_watch *watch, struct diags *d);
/* Reads bytes of a file. 0, or a negative errno with @err: HN_PUSH_CHANGED, changed since the hash,
 * or gone; HN_PUSH_UNREADABLE. */
int manifest_read(struct manifest *p, uint32_t entry, uint64_t offset, void *to, size_t len,
                  struct error *err);
/* Compares the file with the hashed file, without reading: 0 or errors as manifest_read(). */
int manifest_check(const struct manifest *p, uint32_t entry, struct error *err);
/* Returns the place of @path (relative to @cwd) on the nodes, of manifest_pack(); NULL: not pushed.
 * Borrowed. */
const char *manifest_place(const struct manifest *p, const char *cwd, const char *path);
void manifest_finish(struct manifest *p);
