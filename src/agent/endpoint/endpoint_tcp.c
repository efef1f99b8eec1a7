/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections are in up to three lists: all; those with an incomplete command (unfinished.h);
 * @still, which are not read, for the end of a pause. endpoint_tcp_turn() flushes the last writer
 * and arms the timer while commands are incomplete, and deletes keys of past groups. Every libuv
 * handle counts in @handles; the last close callback frees the endpoint.
 */
#include "agent/endpoint/endpoint_tcp.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <utlist.h>

#include "agent/core/sockdiag.h"
#include "agent/endpoint/endpoint_tcp_private.h"
#include "agent/endpoint/port.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        KEEPALIVE_S = 60, /* of silence, then every ten seconds */
        SWEEPS_MAX = 256, /* deletions under way */
};

void endpoint_tcp_unref(struct endpoint_tcp *e)
{
        if (--e->handles > 0)
                return;
        peer_check_destroy(e->peer_check);
        generations_destroy(e->groups.generations);
        free(e);
}

/* --- connections ------------------------------------------------------------------------------ */

/* Takes a connection out of all lists. */
void endpoint_tcp_forget(struct tcp_conn *c)
{
        struct endpoint_tcp *e = c->endpoint;

        DL_DELETE(e->conns.list, c);
        e->conns.n--;
        unfinished_remove(&e->unfinished, &c->part);
        peer_owners_forget(&c->wait);
        generation_leave(e->groups.generations, &c->group);
        if (c->still)
                DL_DELETE2(e->still, c, still_link.prev, still_link.next);
        c->still = false;
}

bool endpoint_tcp_is_crowded(struct endpoint_tcp *e)
{
        if (e->conns.n <= e->conns.max)
                return false;
        if (!e->conns.told) /* once in an attempt, see apply_order() */
                log_line(LOG_WARN,
                         "closed a connection to the store: %zu are open, and the other open files "
                         "of ulimit -n are for ranks",
                         e->conns.max);
        e->conns.told = true;
        return true;
}

void endpoint_tcp_reserve(struct endpoint_tcp *e, size_t fds)
{
        struct rlimit limit;
        /* The usual soft limit, when the limit is not known or has no end. */
        size_t all = 1024;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                all = limit.rlim_cur;
        e->conns.max = all - MIN(fds, all / 2);
        while (endpoint_tcp_is_crowded(e))
                tcp_conn_close(e->conns.list->prev); /* the newest */
}

void endpoint_tcp_expect(struct endpoint_tcp *e, size_t ranks)
{
        generations_expect(e->groups.generations, ranks);
}

/* libuv accepts all waiting connections, and with no descriptor left closes them at once. */
static void on_connection(uv_stream_t *listener, int status)
{
        if (status == 0)
                tcp_conn_accept(listener->data, listener);
}

/* Runs the commands of connections that are not read, where possible, and reads on. */
static void steer_still_conns(struct endpoint_tcp *e)
{
        struct tcp_conn *c, *next;

        /* A command may fill the uplink, and so pause the endpoint again. */
        for (c = e->still; c && !e->paused; c = next) {
                next = c->still_link.next; /* steering takes a connection off the list */
                tcp_conn_steer(c);
        }
}

/* --- keys of past groups (generation.h) ------------------------------------------------------- */

/* A deletion that fails leaves a key behind, which harms no other. */
static void on_swept(void *ctx, const struct store_reply *reply UNUSED)
{
        struct tcp_groups *g = ctx;

        g->under_way--;
}

/* Deletes what the generations have left over, a few keys at a time, as a client of the relay. Once
 * in every turn of the loop. */
static void sweep_past_groups(struct endpoint_tcp *e)
{
        static const struct relay_client_ops relay_ops = { .reply = on_swept };
        struct store_request req = { .op = STORE_DELETE };
        struct tcp_groups *g = &e->groups;

        /* Few at a time: the deletions share the uplink with the commands of ranks. */
        while (!e->paused && g->under_way < SWEEPS_MAX &&
               generations_take_leftover(g->generations, &req.key)) {
                if (!g->sweeper)
                        g->sweeper = relay_client_create(e->relay, relay_ops, g);
                if (!g->sweeper) /* no memory: the key stays */
                        return;
                req.tag = ++g->tag;
                g->under_way++;
                relay_request(g->sweeper, &req);
        }
}

/* Ends the deletions, with the endpoint or an attempt. */
static void end_sweep(struct endpoint_tcp *e)
{
        struct tcp_groups *g = &e->groups;

        if (g->sweeper)
                relay_client_destroy(g->sweeper);
        g->sweeper = NULL;
        g->under_way = 0;
}

/* --- the turn of the loop --------------------------------------------------------------------- */

void endpoint_tcp_turn(struct endpoint_tcp *e)
{
        if (unfinished_turn(&e->unfinished))
                steer_still_conns(e);
        sweep_past_groups(e);
        /* After all commands of the turn: the last writer's answers leave in one call. */
        tcp_conn_flush(e);
        tcp_conn_forget_shared(e);
        unfinished_arm(&e->unfinished);
}

void endpoint_tcp_pause(struct endpoint_tcp *e, bool paused)
{
        if (e->paused == paused)
                return;
        e->paused = paused;
        if (!paused) /* at the beginning each connection stops at the next command */
                steer_still_conns(e);
}

void endpoint_tcp_each(const struct endpoint_tcp *e,
                       void (*fn)(void *ctx, const struct endpoint_tcp_peer *peer), void *ctx)
{
        const struct tcp_conn *c;

        DL_FOREACH(e->conns.list, c)
        {
                if (c->relay)
                        fn(ctx,
                           &(struct endpoint_tcp_peer){ c->peer.addr, c->peer.port, c->relay });
        }
}

uint32_t endpoint_tcp_rejected(const struct endpoint_tcp *e)
{
        return peer_check_rejected(e->peer_check);
}

uint32_t endpoint_tcp_port(const struct endpoint_tcp *e)
{
        return e->port;
}

/* --- listening -------------------------------------------------------------------------------- */

/* Takes @fd, bound. Connections inherit the options of the listener, which saves calls for each.
 * The kernel cuts the backlog to its own limit. */
static int listen_with(struct endpoint_tcp *e, uv_loop_t *loop, int fd)
{
        static const int on = 1, idle = KEEPALIVE_S, interval = 10, probes = 6;
        uv_tcp_t *l = &e->listeners[e->n_listeners];
        int r;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        /* A node that is gone without a word is noticed after KEEPALIVE_S and six probes. */
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        uv_tcp_init(loop, l);
        l->data = e;
        e->handles++;
        e->n_listeners++;
        r = uv_tcp_open(l, fd);
        if (r < 0)
                fd_close(fd);
        return r < 0 ? r : uv_listen((uv_stream_t *)l, INT_MAX, on_connection);
}

/* Listens on 127.0.0.1, on another port when the wanted port is taken, and on ::1 with the same
 * port. 0, or -errno. */
static int listen_on_loopback(struct endpoint_tcp *e, uv_loop_t *loop)
{
        struct sockaddr_in four = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = htons((uint16_t)e->port) };
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        int fd = port_bind((struct sockaddr *)&four, sizeof(four), 1), r;

        /* A rank or another program has taken the number; the head hears of the new one. */
        if (fd == -EADDRINUSE && e->port) {
                four.sin_port = 0;
                fd = port_bind((struct sockaddr *)&four, sizeof(four), 1);
        }
        r = fd < 0 ? fd : listen_with(e, loop, fd);
        if (r < 0)
                return r;
        e->port = ntohs(four.sin_port);
        six.sin6_port = four.sin_port;
        fd = port_bind((struct sockaddr *)&six, sizeof(six), 1);
        if (fd >= 0)
                listen_with(e, loop, fd); /* no other program may answer on ::1 */
        return 0;
}

/* Takes @fd, which is used unless @order asks for another place or the port is taken. */
static int listen_as_ordered(struct endpoint_tcp *e, uv_loop_t *loop, int fd,
                             const struct endpoint_order *order, struct error *err)
{
        struct held_port other = PORT_INIT;
        struct sockaddr_storage addr;
        socklen_t len = sizeof(addr);
        uint32_t port = 0;
        int r = -EADDRINUSE;

        if (fd >= 0 && getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
                port = sockdiag_port((struct sockaddr *)&addr);
        e->port = port;
        /* @fd is bound to all addresses; the number is bound again on loopback. */
        if (order->mode == ENDPOINT_LOOPBACK) {
                fd_close(fd);
                r = listen_on_loopback(e, loop);
        } else {
                if (fd >= 0)
                        r = listen_with(e, loop, fd);
                if (r == -EADDRINUSE)
                        port_hold(&other);
                if (other.fd >= 0) {
                        e->port = other.number;
                        r = listen_with(e, loop, other.fd);
                        fd_close(other.lock); /* of a port that stays bound */
                }
        }
        return r < 0 ? err_set(err, -r, "cannot listen on port %u: %s", port, strerror(-r)) : 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
        endpoint_tcp_unref(h->data);
}

/* Begins an attempt: limits, token, peers, an empty list of groups, and warnings anew. */
static void apply_order(struct endpoint_tcp *e, const struct endpoint_order *order)
{
        e->limits = (struct tcpstore_limits)TCPSTORE_LIMITS;
        if (order->value_max)
                e->limits.value = MIN(order->value_max, (uint32_t)STORE_VALUE_MAX);
        memcpy(e->token, order->token, sizeof(e->token));
        e->peer_check = peer_check_create(&order->peers, order->ask_owners);
        e->groups.generations = generations_create();
        e->told = 0;
        e->unfinished.told = false;
        e->conns.told = false;
        endpoint_tcp_reserve(e, SIZE_MAX); /* until the number of ranks is known: half of all */
}

/* Closes all connections and ends the deletions. The close callbacks come later, so a renewed
 * endpoint has clients of before for a moment; none of them is read any more. */
static void close_connections(struct endpoint_tcp *e)
{
        struct tcp_conn *c, *next;

        DL_FOREACH_SAFE(e->conns.list, c, next)
        {
                tcp_conn_close(c);
        }
        tcp_conn_forget_shared(e);
        end_sweep(e);
}

void endpoint_tcp_renew(struct endpoint_tcp *e, const struct endpoint_order *order)
{
        close_connections(e);
        peer_check_destroy(e->peer_check);
        generations_destroy(e->groups.generations);
        apply_order(e, order);
}

void endpoint_tcp_hang_up(struct endpoint_tcp *e)
{
        close_connections(e);
        generations_destroy(e->groups.generations);
        e->groups.generations = generations_create();
}

void endpoint_tcp_destroy(struct endpoint_tcp *e)
{
        if (!e)
                return;
        close_connections(e);
        for (unsigned i = 0; i < e->n_listeners; i++)
                uv_close((uv_handle_t *)&e->listeners[i], on_closed);
        uv_close((uv_handle_t *)&e->unfinished.timer, on_closed);
}

struct endpoint_tcp *endpoint_tcp_create(uv_loop_t *loop, int fd,
                                         const struct endpoint_order *order, struct relay *relay,
                                         struct peer_owners *owners, struct error *err)
{
        struct endpoint_tcp *e = xcalloc(1, sizeof(*e));

        e->relay = relay;
        e->owners = owners;
        unfinished_init(&e->unfinished, loop, &tcp_conn_unfinished, &e->paused,
                        ENDPOINT_TCP_PATIENCE_MS, e);
        apply_order(e, order);
        e->handles = 1; /* the timer */
        if (listen_as_ordered(e, loop, fd, order, err) == 0)
                return e;
        endpoint_tcp_destroy(e);
        return NULL;
}
