/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flock() on ROOT/ID.lock, because the kernel releases such a lock at the holder's death. The name
 * may go and come while a job waits, so each lock is compared with the name: check_lock_current().
 * No call blocks in flock(): a shared lock is tried again, since removals take a moment only.
 */
#include "agent/files/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum { TRIES = 500, WAIT_US = 10000 }; /* five seconds in all */

/* 0; -EAGAIN: the locked file was removed, or replaced; another -errno. */
static int check_lock_current(int fd, const char *path)
{
        struct stat ours, named;

        if (fstat(fd, &ours) < 0 || stat(path, &named) < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino ? 0 : -EAGAIN;
}

/* -EAGAIN: the folder of the lock is being removed, or was removed. After another error the file
 * goes, too, unless other jobs use the file. */
static int try_share(const char *root, const char *id, const char *path, int *ret_fd)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), r;

        /* ROOT may have been removed meanwhile, when empty. */
        if (fd < 0 && errno == ENOENT && (mkdir(root, 0700) == 0 || errno == EEXIST))
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        r = flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : check_lock_current(fd, path);
        if (!r) {
                *ret_fd = fd;
                return 0;
        }
        /* The lock cannot be had (-ENOLCK, for example): a lock file without a use would stay. */
        if (r != -EAGAIN && cache_lock_alone(fd, root, id) == 0)
                unlink(path);
        fd_close(fd);
        return r;
}

int cache_lock_share(const char *root, const char *id, int *ret_fd)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);
        int r = try_share(root, id, path, ret_fd);

        for (int i = 1; i < TRIES && r == -EAGAIN; i++) {
                usleep(WAIT_US);
                r = try_share(root, id, path, ret_fd);
        }
        return r;
}

/* On NFS a failed upgrade of a shared lock keeps the shared lock: if two jobs leave at once, both
 * upgrades would fail, and neither job would remove the folder. So unlock first. */
int cache_lock_alone(int fd, const char *root, const char *id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);

        if (flock(fd, LOCK_UN) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
                return -errno;
        return check_lock_current(fd, path);
}

int cache_owner_lock(const char *root, const char *who, int *ret_fd)
{
        CLEANUP(free_textp) char *id = xasprintf(".%s", who);

        return *ret_fd < 0 ? cache_lock_share(root, id, ret_fd) : 0;
}

int cache_owner_unlock(const char *root, const char *who, int *fd)
{
        CLEANUP(free_textp) char *id = xasprintf(".%s", who);
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root ? root : "", id);
        int error = 0;

        if (*fd < 0)
                return 0;
        if (cache_lock_alone(*fd, root, id) == 0 && unlink(path) < 0)
                error = errno;
        rmdir(root); /* if empty */
        *fd = fd_close(*fd);
        return error;
}

int cache_root_lock(const char *root)
{
        int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0)
                flock(fd, LOCK_SH | LOCK_NB);
        return fd;
}
