/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port is held by a bound socket that does not listen, from the order until the rank that gets
 * the port starts. The number stays known after the release, for the next attempt.
 */
#include "agent/endpoint/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/memory.h"

/* A socket that never listened leaves no state behind when closed. SO_REUSEADDR is not set:
 * otherwise other programs that set the option could bind the same port. */
int port_bind(struct sockaddr *addr, socklen_t len, int v6only)
{
        int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        if (addr->sa_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
        if (bind(fd, addr, len) == 0 && getsockname(fd, addr, &len) == 0)
                return fd;
        fd_close(fd); /* keeps errno */
        return -errno;
}

void port_hold(struct held_port *p)
{
        in_port_t port = htons((uint16_t)p->number);
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = port };
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = port };

        if (p->fd >= 0)
                return;
        p->fd = port_bind((struct sockaddr *)&six, sizeof(six), 0);
        port = six.sin6_port;
        if (p->fd < 0) {
                p->fd = port_bind((struct sockaddr *)&four, sizeof(four), 0);
                port = four.sin_port;
        }
        if (p->fd >= 0)
                p->number = ntohs(port);
        else
                p->fd = -1;
}

void port_release(struct held_port *p)
{
        p->fd = fd_close(p->fd);
}

void ports_release(struct reserved_ports *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                port_release(&p->v[i]);
        free(p->v);
        *p = (struct reserved_ports){ 0 };
}

int ports_hold(struct reserved_ports *p, uint32_t n)
{
        int error;

        ports_release(p);
        p->v = xcalloc(n, sizeof(*p->v));
        for (; p->n < n; p->n++) {
                struct held_port *port = &p->v[p->n];

                *port = (struct held_port)PORT_INIT;
                port_hold(port);
                if (port->fd >= 0)
                        continue;
                error = errno;
                ports_release(p);
                return -error;
        }
        return 0;
}
