/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull_write: writes files of nodes below a folder of this machine, and nowhere else
 *
 * Paths are relative, without "." and ".." (push_path_is_safe()). No link is followed on the way,
 * not even a pulled link. A file is written beside the final place and renamed when complete; an
 * older file there is replaced. Modes are those of the node, within the umask, and the
 * owner may write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in writing. */
struct pull_file {
        int fd, folder; /* -1 = none */
        char *name;
};

#define PULL_FILE_INIT                                                                             \
        {                                                                                          \
                -1, -1, NULL                                                                       \
        }

/* Makes the folder @path and all folders above; the last part must be no link. A descriptor, or
 * -errno. */
int pull_write_root(const char *path);

/* Each makes the folders above @path. 0 or -errno. */
int pull_write_folder(int root, const char *path, uint32_t mode); /* "" = @root itself */
int pull_write_link(int root, const char *path, const char *target);
int pull_write_begin(struct pull_file *f, int root, const char *path, uint32_t mode);
int pull_write_bytes(struct pull_file *f, const void *data, size_t len);
/* Renames the file to the final name, or removes the file unless @keep. Either way @f is as new. */
int pull_write_end(struct pull_file *f, bool keep);

/* Whether a link at @path to @target stays within the folder, for any other content of the folder:
 * @target is relative and climbs only at the beginning. */
bool pull_link_is_safe(const char *path, const char *target);
