/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last file stays open, since nodes are at about the same file at about the same time. Every
 * open compares the file with the hashed file (device, inode, time, size): a change since then is
 * -ESTALE.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/push/manifest_private.h"

char *manifest_append_name(const char *folder, const char *name)
{
        size_t n = strcmp(folder, "/") ? strlen(folder) : 0, len = strlen(name);
        char *to = xcalloc(1, n + len + 2);

        memcpy(to, folder, n);
        to[n] = '/';
        memcpy(to + n + 1, name, len);
        return to;
}

char *manifest_source_path(const char *dir, const struct manifest_source *s, const char *place)
{
        return s->path ? xstrdup(s->path) : manifest_append_name(dir, place);
}

bool manifest_source_is_same(const struct manifest_source *s, const struct stat *st)
{
        const struct hash_key now = hash_memory_key(st);

        return s->key.dev == now.dev && s->key.ino == now.ino && s->key.mtime_ns == now.mtime_ns &&
               s->key.size == now.size;
}

static char *find_entry_path(const struct manifest *p, uint32_t entry)
{
        return manifest_source_path(p->dir, &p->sources[entry], p->manifest.v[entry].path);
}

static int set_changed_error(const struct manifest *p, uint32_t entry, struct error *err)
{
        CLEANUP(free_textp) char *path = find_entry_path(p, entry);

        err_set(err, ESTALE, "cannot send %s: the file has changed since it was hashed", path);
        err->number = HN_PUSH_CHANGED;
        return -ESTALE;
}

/* A missing file counts as changed: the next step is the same. */
static int set_read_error(const struct manifest *p, uint32_t entry, int error, struct error *err)
{
        CLEANUP(free_textp) char *path = find_entry_path(p, entry);

        err_set(err, error, "cannot read %s: %s", path, strerror(error));
        err->number = error == ENOENT ? HN_PUSH_CHANGED : HN_PUSH_UNREADABLE;
        return -error;
}

int manifest_check(const struct manifest *p, uint32_t entry, struct error *err)
{
        CLEANUP(free_textp) char *path = find_entry_path(p, entry);
        struct stat st;

        if (p->sources[entry].content)
                return 0;
        if (stat(path, &st) < 0)
                return set_read_error(p, entry, errno, err);
        return manifest_source_is_same(&p->sources[entry], &st) ? 0
                                                                : set_changed_error(p, entry, err);
}

/* Puts the time of all copies into the piece of a .pyc from @offset on, if the place is inside. */
static void stamp_piece(unsigned char *piece, uint64_t offset, size_t len)
{
        for (uint64_t i = 0; i < 4; i++)
                if (PYC_TIME + i >= offset && PYC_TIME + i < offset + len)
                        piece[PYC_TIME + i - offset] = (unsigned char)(PUSH_FILE_TIME >> (8 * i));
}

/* Opens the file of an entry unless still open from the last call. */
static int open_manifest_entry(struct manifest *p, uint32_t entry, struct error *err)
{
        CLEANUP(free_textp) char *path = NULL;
        struct stat st;
        int r = 0;

        if (p->fd >= 0 && p->fd_entry == entry)
                return 0;
        fd_close(p->fd);
        path = find_entry_path(p, entry);
        p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (p->fd < 0)
                return set_read_error(p, entry, errno, err);
        p->fd_entry = entry;
        if (fstat(p->fd, &st) < 0)
                r = set_read_error(p, entry, errno, err);
        else if (!manifest_source_is_same(&p->sources[entry], &st))
                r = set_changed_error(p, entry, err);
        if (r)
                p->fd = fd_close(p->fd);
        return r;
}

int manifest_read(struct manifest *p, uint32_t entry, uint64_t offset, void *to, size_t len,
                  struct error *err)
{
        const struct manifest_source *s = &p->sources[entry];
        int r = s->content ? 0 : open_manifest_entry(p, entry, err);
        uint64_t begin = offset;
        char *at = to;
        ssize_t n;

        if (s->content) {
                memcpy(to, s->content + offset, len);
                return 0;
        }

        while (r == 0 && len) {
                n = pread(p->fd, at, len, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                /* The end before the hashed size. */
                if (n <= 0)
                        return n < 0 ? set_read_error(p, entry, errno, err)
                                     : set_changed_error(p, entry, err);
                at += n;
                offset += (uint64_t)n;
                len -= (size_t)n;
        }
        if (r == 0 && s->stamped)
                stamp_piece(to, begin, (size_t)(at - (char *)to));
        return r;
}
