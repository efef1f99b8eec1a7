/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each folder of a path is opened relative to the folder before with O_NOFOLLOW, so a link made
 * between two calls leads nowhere. A missing folder is made on the way. A file is written
 * as PART_NAME in the same folder and renamed at the end; PART_NAME of a killed run is removed
 * first. The modes of the sender are widened only by the right of the owner to enter and to write.
 */
#include "head/pull/pull_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

#define PART_NAME ".hnlaunch-pull"

/* Without these rights of the owner the next file could not be written, nor the copy be removed. */
enum { OWNER_ENTERS = 0700, OWNER_WRITES = 0600 };

/* Opens the folder @name of @dir, made if missing. Or -errno: ELOOP or ENOTDIR for a link. Another
 * process may make the folder at the same time (EEXIST). */
static int enter_folder(int dir, const char *name, uint32_t mode)
{
        int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(dir, name, flags);

        if (fd >= 0 || errno != ENOENT)
                return fd < 0 ? -errno : fd;
        if (mkdirat(dir, name, (mode_t)mode | OWNER_ENTERS) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(dir, name, flags);
        return fd < 0 ? -errno : fd;
}

/* Opens the folder of the last part of @path, *ret_name. Or -errno. */
static int enter_parents(int root, const char *path, const char **ret_name)
{
        /* A copy, because each step closes the folder before. */
        int dir = fcntl(root, F_DUPFD_CLOEXEC, 3), next;
        const char *slash;

        for (; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
                CLEANUP(free_textp) char *name = xstrndup(path, (size_t)(slash - path));

                next = enter_folder(dir, name, 0777);
                fd_close(dir);
                if (next < 0)
                        return next;
                dir = next;
        }
        *ret_name = path;
        return dir < 0 ? -errno : dir;
}

int pull_write_root(const char *path)
{
        CLEANUP(free_textp) char *part = xstrdup(path);

        /* DEST itself is the user's choice: links above the last part are followed. */
        for (char *p = part + 1; (p = strchr(p, '/')); p++) {
                *p = '\0';
                if (mkdir(part, 0777) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        return enter_folder(AT_FDCWD, path, 0777);
}

int pull_write_folder(int root, const char *path, uint32_t mode)
{
        const char *name;
        /* The root exists, and keeps its mode. */
        int dir = *path ? enter_parents(root, path, &name) : 0, fd;

        if (!*path || dir < 0)
                return dir;
        fd = enter_folder(dir, name, mode);
        fd_close(dir);
        fd_close(fd);
        return fd < 0 ? fd : 0;
}

int pull_write_link(int root, const char *path, const char *target)
{
        const char *name;
        int dir = enter_parents(root, path, &name), ret = 0;

        if (dir < 0)
                return dir;
        unlinkat(dir, PART_NAME, 0);
        /* By way of PART_NAME: symlinkat() replaces nothing, rename does. */
        if (symlinkat(target, dir, PART_NAME) < 0 || renameat(dir, PART_NAME, dir, name) < 0) {
                ret = -errno;
                unlinkat(dir, PART_NAME, 0);
        }
        fd_close(dir);
        return ret;
}

int pull_write_begin(struct pull_file *f, int root, const char *path, uint32_t mode)
{
        int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        const char *name;
        int dir = enter_parents(root, path, &name);

        if (dir < 0)
                return dir;
        unlinkat(dir, PART_NAME, 0); /* of a killed run */
        f->fd = openat(dir, PART_NAME, flags, (mode_t)mode | OWNER_WRITES);
        if (f->fd < 0) {
                int error = errno;

                fd_close(dir);
                return -error;
        }
        f->folder = dir;
        f->name = xstrdup(name);
        return 0;
}

int pull_write_bytes(struct pull_file *f, const void *data, size_t len)
{
        return fd_write_all(f->fd, data, len);
}

int pull_write_end(struct pull_file *f, bool keep)
{
        int ret = 0;

        if (f->fd < 0)
                return 0;
        /* NFS reports a full disk here. */
        if (close(f->fd) < 0 && keep)
                ret = -errno;
        if (keep && !ret && renameat(f->folder, PART_NAME, f->folder, f->name) < 0)
                ret = -errno;
        if (!keep || ret)
                unlinkat(f->folder, PART_NAME, 0);
        fd_close(f->folder);
        free(f->name);
        *f = (struct pull_file)PULL_FILE_INIT;
        return ret;
}

bool pull_link_is_safe(const char *path, const char *target)
{
        /* @depth: folders between the link and the root; @down: a name came, which may itself be a
         * link. */
        size_t depth = 0;
        bool down = false;

        if (*target == '/' || !*target)
                return false;
        for (const char *p = path; (p = strchr(p, '/')); p++)
                depth++;
        for (const char *p = target; *p; p += strspn(p, "/")) {
                size_t n = strcspn(p, "/");

                if (n == 2 && !memcmp(p, "..", 2)) {
                        /* Climbing behind a name may start from the target of another link. */
                        if (down || !depth--)
                                return false;
                } else if (n != 1 || *p != '.') {
                        down = true;
                }
                p += n;
        }
        return true;
}
