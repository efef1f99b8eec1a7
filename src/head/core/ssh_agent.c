/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/ssh_agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/macros.h"

/* Waits up to a second while the agent's backlog is full: many nodes log in at once. */
static int connect_agent(const struct sockaddr_un *to)
{
        const struct timeval wait = { .tv_sec = 1 };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
        if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 && fd_set_nonblock(fd) == 0)
                return fd;
        r = -errno;
        fd_close(fd);
        return r;
}

int ssh_agent_connect(struct error *err)
{
        const char *path = getenv("SSH_AUTH_SOCK");
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd;

        if (!path || !*path)
                return err_set(err, ENOENT, "SSH_AUTH_SOCK is not set");
        if (strlen(path) >= sizeof(to.sun_path))
                return err_set(err, ENAMETOOLONG, "SSH_AUTH_SOCK is too long for a socket");
        memcpy(to.sun_path, path, strlen(path) + 1);
        fd = connect_agent(&to);
        if (fd < 0)
                return err_set(err, -fd,
                               "cannot connect to the ssh-agent at %s (SSH_AUTH_SOCK): %s", path,
                               strerror(-fd));
        return fd;
}
