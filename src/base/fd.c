/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read with limits: of size, of kind, and of what may be followed. fd_check_room() counts
 * the closed ones among the lowest numbers in one poll(), as each start calls it.
 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

enum { LOW_FDS = 32 };

int fd_close(int fd)
{
        int saved = errno; /* callers close on the way out of a failed call */

        if (fd >= 0)
                close(fd);
        errno = saved;
        return -1;
}

void fd_closep(int *fd)
{
        *fd = fd_close(*fd);
}

int fd_set_nonblock(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int fd_pair(int ret_fds[2])
{
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds) < 0 ? -errno : 0;
}

/* open() takes the lowest free number, and the numbers below @fd are taken. */
int fd_open_standard(void)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 &&
                    open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0)
                        return -errno;
        return 0;
}

/* Opens the descriptors, in case none of the lowest numbers is free. The recursion holds each
 * descriptor until the last is open. */
static int open_room(int n)
{
        int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), r;

        if (fd < 0)
                return -errno;
        r = n > 1 ? open_room(n - 1) : 0;
        fd_close(fd);
        return r;
}

int fd_check_room(int n)
{
        struct pollfd v[LOW_FDS];
        int closed = 0;

        for (int fd = 0; fd < LOW_FDS; fd++)
                v[fd] = (struct pollfd){ .fd = fd };
        if (poll(v, LOW_FDS, 0) > 0) /* EINVAL: more than the limit of open files */
                for (int fd = 0; fd < LOW_FDS; fd++)
                        closed += (v[fd].revents & POLLNVAL) != 0;
        return closed >= n ? 0 : open_room(n);
}

int fd_unread(int fd)
{
        int n;

        return ioctl(fd, FIONREAD, &n) < 0 ? 0 : n;
}

int fd_write_all(int fd, const void *data, size_t n)
{
        const char *p = data;
        ssize_t r;

        while (n) {
                r = write(fd, p, n);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r > 0) {
                        p += r;
                        n -= (size_t)r;
                }
        }
        return 0;
}

int fd_read_all(int fd, size_t max, char **ret_text, size_t *ret_len)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        size_t len;
        ssize_t r;
        void *to;

        for (;;) {
                /* Most files are small: what a first read leaves is enough for the second. */
                to = buf_reserve(&b, b.mem ? 4096 : 16384);
                if (!to)
                        return -ENOMEM;
                r = read(fd, to, b.cap - b.end);
                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return -errno;
                if (!r)
                        break;
                buf_advance(&b, (size_t)r);
                if (buf_len(&b) > max)
                        return -EFBIG;
        }
        len = buf_len(&b);
        *ret_text = buf_steal(&b);
        if (ret_len)
                *ret_len = len;
        return *ret_text ? 0 : -ENOMEM;
}

int fd_read_file(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        return fd < 0 ? -errno : fd_read_all(fd, max, ret_text, ret_len);
}

int fd_read_regular(int dir, const char *path, size_t max, char **ret_text, size_t *ret_len)
{
        /* Without O_NONBLOCK a FIFO would be waited for here. */
        CLEANUP(fd_closep)
        int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
        struct stat st;

        if (fd < 0)
                /* ELOOP: O_NOFOLLOW met a link. ENXIO: a socket, or a device without a driver. */
                return errno == ELOOP || errno == ENXIO ? -EINVAL : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        /* fd_read_all() checks once more, because a file may grow. */
        if ((uintmax_t)st.st_size > max)
                return -EFBIG;
        return fd_read_all(fd, max, ret_text, ret_len);
}
