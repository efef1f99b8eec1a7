/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"

int fd_close(int fd)
{
        int saved = errno;

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

int fd_read_file(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        size_t len;
        ssize_t r;
        void *to;

        if (fd < 0)
                return -errno;
        for (;;) {
                to = buf_reserve(&b, 65536);
                if (!to)
                        return -ENOMEM;
                r = read(fd, to, 65536);
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
