/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parcel: what --push sends to the nodes
 *
 * A FILE or DIR of the command line lands where it is relative to the current directory; what is
 * outside of that lands under its last name. Folders go with all that is in them. A symbolic link
 * stays one when it is relative and leads to a place in the same DIR; one that leads elsewhere to a
 * file is sent as that file. The named FILE or DIR may itself be a link: what it leads to is sent.
 *
 * One thread. Files are read when they are hashed, and again as they are sent.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"
#include "head/term/diag.h"
#include "wire/push_msg.h"

/* Where an entry comes from, and what it looked like when it was hashed. */
struct manifest_source {
        char *path; /* absolute */
        uint64_t dev, ino;
        int64_t mtime_ns;
};

struct manifest {
        struct push_manifest manifest;   /* sorted by path */
        struct manifest_source *sources; /* one per entry */
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

/* Called now and then while files are hashed, with the bytes done so far. */
struct manifest_watch {
        void (*tick)(void *ctx, uint64_t bytes);
        void *ctx;
};

/* Gathers and hashes @paths, relative to @cwd. 0, or -EINVAL with errors in @d (exit 66): no such
 * file (HN230), not readable (HN231), neither file nor folder nor link to a file (HN232), two
 * things in one place (HN233), too many (HN238), changed meanwhile (HN237). @p is MANIFEST_INIT. */
int manifest_pack(struct manifest *p, const struct strv *paths, const char *cwd,
                  const struct manifest_watch *watch, struct diags *d);
/* Bytes of a file. 0; -ESTALE: it is not what was hashed, or gone; other errno of reading. */
int manifest_read(struct manifest *p, uint32_t entry, uint64_t offset, void *to, size_t len,
                  struct error *err);
/* 0, or -ESTALE as manifest_read(), without reading. */
int manifest_check(const struct manifest *p, uint32_t entry, struct error *err);
/* Where @path, relative to @cwd, lands; NULL: it is not in there. Lent. */
const char *manifest_place(const struct manifest *p, const char *cwd, const char *path);
void manifest_finish(struct manifest *p);
