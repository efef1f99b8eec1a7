/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New peers stand at the front of a list. A new connection first makes room: the oldest silent
 * peers of the same address go down to the share of an address, then the silent peers of all
 * addresses, then the oldest peer between greeting and JOIN. Bytes of a silent peer are read before
 * the peer is dropped, because in a burst of nodes the greeting may be there unread. A tick drops
 * peers older than GREETING_MS.
 */
#include "head/dial_in/dial_listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"

enum { GREETING_MS = 10000 }; /* for a connection to join */

void dial_listener_reject(struct dial_listener *l, const struct dial_peer *p,
                          enum dial_peer_fault fault)
{
        struct dial_rejects *r = l->rejects;

        r->foreign += fault == PEER_FOREIGN;
        r->silent += fault == PEER_SILENT;
        r->replayed += fault == PEER_REPLAYED;
        snprintf(r->last, sizeof(r->last), "%s", p->address);
}

static bool has_greeted(const struct dial_peer *p)
{
        return p->state == PEER_PROVING || p->state == PEER_JOINING;
}

/* Finds the oldest peer with a greeting, or without, and counts these peers; of an address unless
 * @address is NULL. */
static struct dial_peer *find_oldest(struct dial_listener *l, bool greeted, const char *address,
                                     size_t *ret_n)
{
        struct dial_peer *oldest = NULL, *p;

        *ret_n = 0;
        LIST_FOREACH(p, &l->fresh, entry)
        if ((greeted ? has_greeted(p) : p->state == PEER_GREETING) &&
            (!address || !strcmp(p->address, address))) {
                /* The newest is the first of the list. */
                oldest = p;
                ++*ret_n;
        }
        return oldest;
}

static void drop_peer(struct dial_listener *l, struct dial_peer *p)
{
        dial_listener_reject(l, p, PEER_SILENT);
        dial_peer_close(p);
}

/* Drops peers until there is room for others. In a burst of nodes greetings may have
 * come unread: these peers are not silent. */
static void drop_silent_peers(struct dial_listener *l, const char *address)
{
        struct dial_peer *p;
        size_t n;

        /* Each turn moves a peer to another state, so the loops end. */
        while ((p = find_oldest(l, false, address, &n)) && n > DIAL_SHARE)
                if (!dial_peer_read_now(p))
                        drop_peer(l, p);
        while ((p = find_oldest(l, false, NULL, &n)) && n > DIAL_SILENT_MAX)
                if (!dial_peer_read_now(p))
                        drop_peer(l, p);
        while ((p = find_oldest(l, true, NULL, &n)) && n > DIAL_JOINING_MAX)
                drop_peer(l, p);
}

static void on_connection(uv_stream_t *s, int status)
{
        struct dial_listener *l = s->data;
        struct dial_peer *p;

        if (status < 0)
                return;
        p = xcalloc(1, sizeof(*p));
        p->ops = l->ops;
        p->owner = l->owner;
        p->psk = l->psk;
        LIST_INSERT_HEAD(&l->fresh, p, entry);
        /* Otherwise the peer is closing already, for dial_listener_closed() to free. */
        if (dial_peer_accept(p, s) == 0)
                drop_silent_peers(l, p->address);
}

void dial_listener_tick(struct dial_listener *l)
{
        int64_t since = clock_ns() - (int64_t)GREETING_MS * 1000000;
        struct dial_peer *p;

        /* Closed peers leave the list in a later turn of the loop. */
        LIST_FOREACH(p, &l->fresh, entry)
        if ((p->state == PEER_GREETING || has_greeted(p)) && p->since_ns < since)
                drop_peer(l, p);
}

/* Opens a listening socket at an address, at "::" for IPv4, too; -errno. */
static int listen_at(const struct sockaddr *a, socklen_t len)
{
        int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
        static const int on = 1, off = 0;

        if (fd < 0)
                return -errno;
        /* Connections of an earlier job in TIME_WAIT must not hold the port. */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (a->sa_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (bind(fd, a, len) == 0 && listen(fd, SOMAXCONN) == 0)
                return fd;
        r = -errno;
        fd_close(fd);
        return r;
}

static bool is_loopback(const struct sockaddr *a)
{
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

        if (a->sa_family == AF_INET6)
                return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Opens the port at the first address of @host on this machine and within reach of others. -errno;
 * -EADDRNOTAVAIL: there is none, or the name does not resolve. */
static int listen_on(const char *host, int port)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *all = NULL;
        int r = -EADDRNOTAVAIL;
        char text[16];

        snprintf(text, sizeof(text), "%d", port);
        if (getaddrinfo(host, text, &hints, &all) != 0)
                return -EADDRNOTAVAIL;
        /* A port in use is an error, and not avoided by another address. */
        for (struct addrinfo *a = all; a && r < 0 && r != -EADDRINUSE; a = a->ai_next)
                if (!is_loopback(a->ai_addr))
                        r = listen_at(a->ai_addr, a->ai_addrlen);
        freeaddrinfo(all);
        return r;
}

static int listen_everywhere(int port)
{
        const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                         .sin6_port = htons((uint16_t)port) };
        const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        int fd = listen_at((const struct sockaddr *)&v6, sizeof(v6));

        if (fd < 0 && fd != -EADDRINUSE) /* without IPv6 */
                fd = listen_at((const struct sockaddr *)&v4, sizeof(v4));
        return fd;
}

int dial_listener_open(struct dial_listener *l, uv_loop_t *loop, const char *host, int port,
                       uv_close_cb closed, struct error *err)
{
        int fd = host ? listen_on(host, port) : -EADDRNOTAVAIL, r;

        if (fd == -EADDRNOTAVAIL) /* a translated address, or this machine's name for itself */
                fd = listen_everywhere(port);
        if (fd < 0)
                return err_set(err, -fd, "cannot open port %d of %s for the nodes: %s", port,
                               host ? host : "this machine", strerror(-fd));
        uv_tcp_init(loop, &l->tcp);
        r = uv_tcp_open(&l->tcp, fd);
        if (r < 0)
                fd_close(fd);
        l->tcp.data = l;
        if (r == 0)
                r = uv_listen((uv_stream_t *)&l->tcp, SOMAXCONN, on_connection);
        if (r == 0)
                return 0;
        uv_close((uv_handle_t *)&l->tcp, closed);
        return err_set(err, -r, "cannot listen on port %d: %s", port, uv_strerror(r));
}

void dial_listener_join(struct dial_listener *l, struct dial_peer *p)
{
        LIST_REMOVE(p, entry);
        LIST_INSERT_HEAD(&l->joined, p, entry);
}

bool dial_listener_linger(struct dial_listener *l)
{
        int64_t last_ns = clock_ns() - (int64_t)DIAL_LINGER_MS * 1000000;
        struct dial_peer *p;
        bool ending = false;

        LIST_FOREACH(p, &l->joined, entry)
        {
                ending |= p->ended;
                /* Since END: dial_peer_end() sets the time anew. */
                if (p->ended && p->since_ns <= last_ns)
                        dial_peer_close(p);
        }
        return ending;
}

bool dial_listener_closed(struct dial_listener *l, struct dial_peer *p)
{
        /* An entry does not tell the list, so the list is searched. */
        struct dial_peer *one = LIST_FIRST(&l->joined);

        while (one && one != p)
                one = LIST_NEXT(one, entry);
        LIST_REMOVE(p, entry);
        free(p);
        return one;
}

void dial_listener_close(struct dial_listener *l, uv_close_cb closed)
{
        struct dial_peer *p;

        uv_close((uv_handle_t *)&l->tcp, closed);
        /* Joined peers stay, for their owner to end. */
        LIST_FOREACH(p, &l->fresh, entry) dial_peer_close(p);
}

bool dial_listener_idle(const struct dial_listener *l)
{
        return LIST_EMPTY(&l->fresh) && LIST_EMPTY(&l->joined);
}
