/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

enum { TRIES = 500, WAIT_US = 10000 };

static bool is_lock_current(int fd, const char *path)
{
        struct stat ours, named;

        return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
               ours.st_ino == named.st_ino;
}

/* -EAGAIN: the folder of the lock is being removed, or was. */
static int try_share(const char *root, const char *path, int *ret_fd)
{
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), r = 0;

        /* ROOT may have been removed meanwhile, when empty. */
        if (fd < 0 && errno == ENOENT && (mkdir(root, 0700) == 0 || errno == EEXIST))
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        if (flock(fd, LOCK_SH | LOCK_NB) < 0)
                r = -errno;
        else if (!is_lock_current(fd, path))
                r = -EAGAIN;
        if (r)
                fd_close(fd);
        else
                *ret_fd = fd;
        return r;
}

int cache_lock_share(const char *root, const char *id, int *ret_fd)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);
        int r = try_share(root, path, ret_fd);

        for (int i = 1; i < TRIES && r == -EAGAIN; i++) {
                usleep(WAIT_US);
                r = try_share(root, path, ret_fd);
        }
        return r;
}

/* On NFS a failed upgrade of a shared lock keeps the shared lock: of two jobs that leave at once
 * both would fail, and neither would remove the folder. So unlock first. */
bool cache_lock_alone(int fd, const char *root, const char *id)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s.lock", root, id);

        return flock(fd, LOCK_UN) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
               is_lock_current(fd, path);
}
