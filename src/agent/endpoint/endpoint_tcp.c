/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/endpoint_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <utlist.h>

#include "agent/core/sockdiag.h"
#include "agent/endpoint/endpoint_tcp_private.h"
#include "agent/endpoint/port.h"
#include "base/fd.h"
#include "base/strv.h"

enum {
        BACKLOG = 4096, /* if the kernel does not tell its own limit */
        LOOK_MS = 1000,
        KEEPALIVE_S = 60, /* of silence, then every ten seconds */
};

void endpoint_tcp_unref(struct endpoint_tcp *d)
{
        if (--d->handles > 0)
                return;
        peer_check_destroy(d->peer_check);
        free(d);
}

/* --- connections ------------------------------------------------------------------------------ */

/* Takes a connection out of all lists. */
void endpoint_tcp_forget(struct tcp_conn *c)
{
        struct endpoint_tcp *d = c->endpoint;

        DL_DELETE(d->conns, c);
        if (c->half)
                DL_DELETE2(d->half, c, half_prev, half_next);
        if (c->still)
                DL_DELETE2(d->still, c, still_prev, still_next);
        c->half = c->still = false;
}

/* The list is in the order of time. */
static void on_timer(uv_timer_t *timer)
{
        struct endpoint_tcp *d = timer->data;
        uint64_t now = uv_now(timer->loop);

        while (d->half && now - d->half->half_since >= ENDPOINT_TCP_PATIENCE_MS)
                tcp_conn_fail(d->half, "it said half a command and nothing more");
}

/* libuv accepts until there is nobody left, and keeps a descriptor in reserve: when there are no
 * more, connections are closed at once instead of waking us for ever. */
static void on_connection(uv_stream_t *listener, int status)
{
        if (status == 0)
                tcp_conn_accept(listener->data, listener);
}

void endpoint_tcp_turn(struct endpoint_tcp *d)
{
        bool running = uv_is_active((uv_handle_t *)&d->timer);

        tcp_conn_flush(d);
        tcp_conn_forget_shared(d);
        if (d->half && !running)
                uv_timer_start(&d->timer, on_timer, LOOK_MS, LOOK_MS);
        else if (!d->half && running)
                uv_timer_stop(&d->timer);
}

void endpoint_tcp_pause(struct endpoint_tcp *d, bool paused)
{
        struct tcp_conn *c, *next;

        if (d->paused == paused)
                return;
        d->paused = paused;
        if (paused)
                return; /* each stops at its next word */
        for (c = d->still; c && !d->paused; c = next) {
                next = c->still_next;
                tcp_conn_steer(c);
        }
}

void endpoint_tcp_each(const struct endpoint_tcp *d,
                       void (*fn)(void *ctx, const struct endpoint_tcp_guest *guest), void *ctx)
{
        const struct tcp_conn *c;

        DL_FOREACH(d->conns, c)
        {
                fn(ctx, &(struct endpoint_tcp_guest){ c->guest.addr, c->guest.port, c->relay });
        }
}

uint32_t endpoint_tcp_strangers(const struct endpoint_tcp *d)
{
        return peer_check_rejected(d->peer_check);
}

uint32_t endpoint_tcp_port(const struct endpoint_tcp *d)
{
        return d->port;
}

/* --- listening -------------------------------------------------------------------------------- */

/* A connection inherits these from its listener, which saves calls for each of them. */
static void set_options(int fd)
{
        static const int on = 1, idle = KEEPALIVE_S, interval = 10, probes = 6;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static int backlog(void)
{
        char *text = NULL;
        int most = 0;

        if (fd_read_file("/proc/sys/net/core/somaxconn", 64, &text, NULL) == 0)
                most = atoi(text);
        free(text);
        return most > 0 ? most : BACKLOG;
}

/* Takes @fd, bound. */
static int listen_with(struct endpoint_tcp *d, uv_loop_t *loop, int fd)
{
        uv_tcp_t *l = &d->listeners[d->n_listeners];
        int r;

        set_options(fd);
        uv_tcp_init(loop, l);
        l->data = d;
        d->handles++;
        d->n_listeners++;
        r = uv_tcp_open(l, fd);
        if (r < 0)
                fd_close(fd);
        return r < 0 ? r : uv_listen((uv_stream_t *)l, backlog(), on_connection);
}

/* A socket bound to @addr, whose port is filled in when it was 0; or -errno. */
static int bind_to(struct sockaddr *addr, socklen_t len)
{
        int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, saved;

        if (fd < 0)
                return -errno;
        if (addr->sa_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (bind(fd, addr, len) == 0 && getsockname(fd, addr, &len) == 0)
                return fd;
        saved = errno;
        fd_close(fd);
        return -saved;
}

static int listen_on_loopback(struct endpoint_tcp *d, uv_loop_t *loop, uint32_t port)
{
        struct sockaddr_in four = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = htons((uint16_t)port) };
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        int fd = bind_to((struct sockaddr *)&four, sizeof(four)), r;

        if (fd == -EADDRINUSE && port) {
                four.sin_port = 0;
                fd = bind_to((struct sockaddr *)&four, sizeof(four));
        }
        r = fd < 0 ? fd : listen_with(d, loop, fd);
        if (r < 0)
                return r;
        d->port = ntohs(four.sin_port);
        six.sin6_port = four.sin_port;
        fd = bind_to((struct sockaddr *)&six, sizeof(six));
        if (fd >= 0)
                listen_with(d, loop, fd); /* whoever says ::1 finds nobody else there */
        return 0;
}

static uint32_t port_of(int fd)
{
        struct sockaddr_storage addr;
        socklen_t len = sizeof(addr);

        return fd >= 0 && getsockname(fd, (struct sockaddr *)&addr, &len) == 0
                       ? sockdiag_port((struct sockaddr *)&addr)
                       : 0;
}

/* Takes @fd, or binds another port. */
static int listen_on_all(struct endpoint_tcp *d, uv_loop_t *loop, int fd)
{
        struct port other = PORT_INIT;
        int r = -EADDRINUSE;

        d->port = port_of(fd);
        if (fd >= 0)
                r = listen_with(d, loop, fd);
        if (r != -EADDRINUSE)
                return r;
        port_hold(&other);
        if (other.fd < 0)
                return r;
        d->port = other.number;
        return listen_with(d, loop, other.fd);
}

static int listen_as_ordered(struct endpoint_tcp *d, uv_loop_t *loop, int fd,
                             const struct endpoint_order *order, struct error *err)
{
        uint32_t port = port_of(fd);
        int r;

        if (order->mode == ENDPOINT_LOOPBACK) {
                fd_close(fd);
                r = listen_on_loopback(d, loop, port);
        } else {
                r = listen_on_all(d, loop, fd);
        }
        return r < 0 ? err_set(err, -r, "cannot listen on port %u: %s", port, strerror(-r)) : 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
        endpoint_tcp_unref(h->data);
}

static void take_order(struct endpoint_tcp *d, const struct endpoint_order *order)
{
        d->limits = (struct tcpstore_limits)TCPSTORE_LIMITS;
        if (order->value_max)
                d->limits.value = MIN(order->value_max, (uint32_t)STORE_VALUE_MAX);
        memcpy(d->token, order->token, sizeof(d->token));
        d->peer_check = peer_check_create(&order->peers);
        d->told = 0;
}

static void close_all(struct endpoint_tcp *d)
{
        struct tcp_conn *c, *next;

        DL_FOREACH_SAFE(d->conns, c, next)
        {
                tcp_conn_close(c);
        }
        tcp_conn_forget_shared(d);
}

void endpoint_tcp_renew(struct endpoint_tcp *d, const struct endpoint_order *order)
{
        close_all(d);
        peer_check_destroy(d->peer_check);
        take_order(d, order);
}

void endpoint_tcp_destroy(struct endpoint_tcp *d)
{
        if (!d)
                return;
        close_all(d);
        for (unsigned i = 0; i < d->n_listeners; i++)
                uv_close((uv_handle_t *)&d->listeners[i], on_closed);
        uv_close((uv_handle_t *)&d->timer, on_closed);
}

struct endpoint_tcp *endpoint_tcp_create(uv_loop_t *loop, int fd,
                                         const struct endpoint_order *order, struct relay *relay,
                                         struct error *err)
{
        struct endpoint_tcp *d = xcalloc(1, sizeof(*d));

        d->relay = relay;
        take_order(d, order);
        uv_timer_init(loop, &d->timer);
        d->timer.data = d;
        d->handles = 1;
        if (listen_as_ordered(d, loop, fd, order, err) == 0)
                return d;
        endpoint_tcp_destroy(d);
        return NULL;
}
