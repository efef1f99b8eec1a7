/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

/* A socket that never listened leaves no state behind when closed. SO_REUSEADDR is not set:
 * otherwise other programs that set the option could bind the same port. */
static int bind_port(struct held_port *p, int family)
{
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
        struct sockaddr_in four = { .sin_family = AF_INET };
        struct sockaddr *addr =
                family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
        socklen_t len = family == AF_INET6 ? sizeof(six) : sizeof(four);
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;

        if (fd < 0)
                return -1;
        if (family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        six.sin6_port = four.sin_port = htons((uint16_t)p->number);
        if (bind(fd, addr, len) < 0 || getsockname(fd, addr, &len) < 0)
                return fd_close(fd);
        p->number = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
        return fd;
}

void port_hold(struct held_port *p)
{
        if (p->fd < 0)
                p->fd = bind_port(p, AF_INET6);
        if (p->fd < 0)
                p->fd = bind_port(p, AF_INET);
}

void port_release(struct held_port *p)
{
        p->fd = fd_close(p->fd);
}
