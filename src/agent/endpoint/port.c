/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port is held by a bound socket that does not listen, from the order until the rank that gets
 * the port starts. The number stays known after the release, for the next attempt.
 *
 * Between the start of a rank and its bind() a port is free for everybody. So that the ranks of two
 * jobs never get the same one, an agent locks the numbers that it gives out, and takes no locked
 * one for itself: a lock is a bound abstract Unix socket with the number in its name. Such names
 * belong to a network namespace, as ports do, and end with the agent.
 */
#include "agent/endpoint/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/memory.h"

enum { LOCKED_MAX = 64 }; /* locked ports that the kernel may offer in a row */

/* --- locks ------------------------------------------------------------------------------------ */

/* Locks a number for this agent. Returns the lock, or -1 with errno: EADDRINUSE = it is locked. */
static int lock_number(uint32_t number)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        /* An abstract name begins with a NUL and ends with the length, so no file is left
         * behind. */
        int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "hnlaunch-port-%u", number);
        size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&addr, (socklen_t)len) == 0)
                return fd;
        return fd_close(fd); /* keeps errno */
}

/* Tries to lock the number, and gives a lock back at once. */
static bool is_locked(uint32_t number)
{
        int lock = lock_number(number);
        /* Without descriptors the port counts as free: bind() decides. */
        bool locked = lock < 0 && errno == EADDRINUSE;

        fd_close(lock);
        return locked;
}

/* --- ports ------------------------------------------------------------------------------------ */

/* A socket that never listened leaves no state behind when closed. SO_REUSEADDR is not set:
 * otherwise other programs that set the option could bind the same port. */
static int bind_once(struct sockaddr *addr, socklen_t len, int v6only)
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

/* While a locked port is bound here, the kernel gives another one. */
int port_bind(struct sockaddr *addr, socklen_t len, int v6only)
{
        in_port_t *port = addr->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)addr)->sin6_port
                                                      : &((struct sockaddr_in *)addr)->sin_port;
        bool any = !*port;
        /* Held until the end, or the kernel might offer a port once more. */
        int passed[LOCKED_MAX], fd;
        size_t n = 0;

        while ((fd = bind_once(addr, len, v6only)) >= 0 && any && n < LOCKED_MAX &&
               is_locked(ntohs(*port))) {
                passed[n++] = fd;
                *port = 0;
        }
        if (fd >= 0 && any && n == LOCKED_MAX && is_locked(ntohs(*port))) {
                fd_close(fd);
                fd = -EADDRINUSE;
        }
        while (n)
                fd_close(passed[--n]);
        return fd;
}

/* Binds @p->number, or with 0 a port that the kernel chooses. */
static void bind_port(struct held_port *p)
{
        in_port_t port = htons((uint16_t)p->number);
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = port };
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = port };

        p->fd = port_bind((struct sockaddr *)&six, sizeof(six), 0);
        port = six.sin6_port;
        if (p->fd < 0) { /* a machine without IPv6 */
                p->fd = port_bind((struct sockaddr *)&four, sizeof(four), 0);
                port = four.sin_port;
        }
        if (p->fd >= 0)
                p->number = ntohs(port);
        else
                p->fd = -1;
}

void port_hold(struct held_port *p)
{
        if (p->fd >= 0)
                return;
        bind_port(p);
        if (p->fd < 0 || p->lock >= 0) /* held before: the number is locked still */
                return;
        p->lock = lock_number(p->number);
        if (p->lock < 0)
                port_release(p); /* keeps errno */
}

void port_release(struct held_port *p)
{
        p->fd = fd_close(p->fd);
}

void port_drop(struct held_port *p)
{
        port_release(p);
        fd_close(p->lock);
        *p = (struct held_port)PORT_INIT;
}

void ports_release(struct reserved_ports *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                port_release(&p->v[i]);
}

void ports_drop(struct reserved_ports *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                port_drop(&p->v[i]);
        free(p->v);
        *p = (struct reserved_ports){ 0 };
}

int ports_hold(struct reserved_ports *p, uint32_t n)
{
        int error;

        ports_drop(p); /* unlocked, so the kernel may offer the same numbers */
        p->v = xcalloc(n, sizeof(*p->v));
        for (; p->n < n; p->n++) {
                struct held_port *port = &p->v[p->n];

                *port = (struct held_port)PORT_INIT;
                port_hold(port);
                if (port->fd >= 0)
                        continue;
                error = errno;
                ports_drop(p);
                return -error;
        }
        return 0;
}
