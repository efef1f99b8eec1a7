/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull_write: writes what nodes send below a folder of this machine, and nowhere else
 *
 * Paths are relative, without "." and ".." (push_path_is_safe()). No link is followed on the way,
 * not even one that was pulled before. A file is written beside its place and renamed when it is
 * complete; an older file there is replaced. Modes are those of the node, within the umask, and the
 * owner may write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that is being written. */
struct pull_file {
        int fd, folder; /* -1 = none */
        char *name;
};

#define PULL_FILE_INIT                                                                             \
        {                                                                                          \
                -1, -1, NULL                                                                       \
        }

/* Makes the folder @path and those above it; the last part of it must be no link. A descriptor, or
 * -errno. */
int pull_write_root(const char *path);

/* Each makes the folders above @path. 0 or -errno. */
int pull_write_folder(int root, const char *path, uint32_t mode); /* "" = @root itself */
int pull_write_link(int root, const char *path, const char *target);
int pull_write_begin(struct pull_file *f, int root, const char *path, uint32_t mode);
int pull_write_bytes(struct pull_file *f, const void *data, size_t len);
/* Puts the file in its place, or removes it unless @keep. Either way @f is as new. */
int pull_write_end(struct pull_file *f, bool keep);

/* Whether a link at @path that leads to @target stays within the folder, whatever else is
 * there: it is relative and climbs only at its beginning. */
bool pull_link_is_safe(const char *path, const char *target);
