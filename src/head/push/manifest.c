/* SPDX-License-Identifier: Apache-2.0 */
#include "head/push/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/push/manifest_private.h"

void manifest_note(struct manifest_source *s, const struct stat *st)
{
        s->dev = st->st_dev;
        s->ino = st->st_ino;
        s->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

bool manifest_is(const struct manifest_source *s, const struct push_entry *e, const struct stat *st)
{
        struct manifest_source now = { 0 };

        manifest_note(&now, st);
        return s->dev == now.dev && s->ino == now.ino && s->mtime_ns == now.mtime_ns &&
               e->size == (uint64_t)st->st_size;
}

static int changed(const struct manifest *p, uint32_t entry, struct error *err)
{
        return err_set(err, ESTALE, "%s has changed since it was looked at",
                       p->sources[entry].path);
}

static int gone(const struct manifest *p, uint32_t entry, int error, struct error *err)
{
        err_set(err, error, "%s cannot be read any more: %s", p->sources[entry].path,
                strerror(error));
        return error == ENOENT ? -ESTALE : -error;
}

int manifest_check(const struct manifest *p, uint32_t entry, struct error *err)
{
        struct stat st;

        if (stat(p->sources[entry].path, &st) < 0)
                return gone(p, entry, errno, err);
        return manifest_is(&p->sources[entry], &p->manifest.v[entry], &st) ? 0
                                                                           : changed(p, entry, err);
}

/* Nodes are at about the same file at about the same time. */
static int open_entry(struct manifest *p, uint32_t entry, struct error *err)
{
        struct stat st;

        if (p->fd >= 0 && p->fd_entry == entry)
                return 0;
        fd_close(p->fd);
        p->fd = open(p->sources[entry].path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (p->fd < 0)
                return gone(p, entry, errno, err);
        p->fd_entry = entry;
        if (fstat(p->fd, &st) == 0 && manifest_is(&p->sources[entry], &p->manifest.v[entry], &st))
                return 0;
        p->fd = fd_close(p->fd);
        return changed(p, entry, err);
}

int manifest_read(struct manifest *p, uint32_t entry, uint64_t offset, void *to, size_t len,
                  struct error *err)
{
        int r = open_entry(p, entry, err);
        char *at = to;
        ssize_t n;

        while (r == 0 && len) {
                n = pread(p->fd, at, len, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? gone(p, entry, errno, err) : changed(p, entry, err);
                at += n;
                offset += (uint64_t)n;
                len -= (size_t)n;
        }
        return r;
}

const char *manifest_place(const struct manifest *p, const char *cwd, const char *path)
{
        char *full = manifest_absolute(cwd, path);
        const char *place = NULL;

        for (uint32_t i = 0; i < p->manifest.n && !place; i++)
                if (!strcmp(p->sources[i].path, full))
                        place = p->manifest.v[i].path;
        free(full);
        return place;
}

void manifest_finish(struct manifest *p)
{
        for (uint32_t i = 0; i < p->manifest.n; i++)
                free(p->sources[i].path);
        free(p->sources);
        push_manifest_finish(&p->manifest);
        fd_close(p->fd);
        *p = (struct manifest)MANIFEST_INIT;
}
