/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of the user is a server that others may block: a full backlog makes connect() wait, and
 * a forwarded agent answers over the network. So all calls have a limit, as timeouts of the socket,
 * before the descriptor becomes non-blocking.
 */
#include "head/core/ssh_agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/macros.h"

int ssh_agent_open(const char *path, int wait_s)
{
        const struct timeval wait = { .tv_sec = wait_s };
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd, r;

        if (strlen(path) >= sizeof(to.sun_path))
                return -ENAMETOOLONG;
        memcpy(to.sun_path, path, strlen(path) + 1);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
        if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
                return fd;
        r = -errno;
        fd_close(fd);
        return r;
}

int ssh_agent_connect(struct error *err)
{
        const char *path = getenv("SSH_AUTH_SOCK");
        int fd;

        if (!path || !*path)
                return err_set(err, ENOENT, "SSH_AUTH_SOCK is not set");
        fd = ssh_agent_open(path, 1); /* the backlog may be full: many nodes log in at once */
        /* A socket's path has 108 bytes at most; strerror() would speak of a file name. */
        if (fd == -ENAMETOOLONG)
                return err_set(err, ENAMETOOLONG, "SSH_AUTH_SOCK is too long for a socket");
        if (fd < 0)
                return err_set(err, -fd,
                               "cannot connect to the ssh-agent at %s (SSH_AUTH_SOCK): %s", path,
                               strerror(-fd));
        fd_set_nonblock(fd);
        return fd;
}
