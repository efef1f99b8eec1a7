/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest: the files sent to the nodes by --push
 *
 * A FILE or DIR of the command line keeps the place relative to the current directory; a path
 * outside lands under the last name. Folders are sent with all contents. A symbolic link stays a
 * link if it is relative and leads to a place in the same DIR; a link to a file elsewhere is sent
 * as a file. The named FILE or DIR may itself be a link: the target is sent.
 *
 * For one thread. Files are read for the hash, and again to be sent.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "head/term/diag.h"
#include "wire/push_msg.h"

/* The source of an entry, as of the time of hashing. */
struct manifest_source {
        char *path; /* absolute */
        uint64_t dev, ino;
        int64_t mtime_ns;
};

struct manifest {
        struct push_manifest manifest;   /* sorted by path */
        struct manifest_source *sources; /* per entry */
        uint32_t files;
        uint64_t bytes;      /* of all files */
        uint64_t wire_bytes; /* of the manifest */
        int fd;              /* of the file read last, -1 = none */
        uint32_t fd_entry;
};

#define MANIFEST_INIT                                                                              \
        {                                                                                          \
                .fd = -1                                                                           \
        }

/* tick() is called while files are hashed, with the bytes done so far. */
struct manifest_watch {
        void (*tick)(void *ctx, uint64_t bytes);
        void *ctx;
};

/* Gathers and hashes @paths, relative to @cwd, into @p (MANIFEST_INIT). 0, or -EINVAL with errors
 * in @d (exit 66): no such file (HN230), not readable (HN231), neither file nor folder nor link to
 * a file (HN232), two files in a place (HN233), too many (HN238), changed meanwhile (HN237). */
int manifest_pack(struct manifest *p, const struct strv *paths, const char *cwd,
                  const struct manifest_watch *watch, struct diags *d);
/* Reads bytes of a file. 0, or a negative errno with @err: HN_PUSH_CHANGED, changed since the hash,
 * or gone; HN_PUSH_UNREADABLE. */
int manifest_read(struct manifest *p, uint32_t entry, uint64_t offset, void *to, size_t len,
                  struct error *err);
/* Compares the file with the hashed one, without reading: 0 or errors as manifest_read(). */
int manifest_check(const struct manifest *p, uint32_t entry, struct error *err);
/* Returns the place of @path (relative to @cwd) on the nodes; NULL: not pushed. Borrowed. */
const char *manifest_place(const struct manifest *p, const char *cwd, const char *path);
void manifest_finish(struct manifest *p);
