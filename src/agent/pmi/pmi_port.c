/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accepted connection is checked for its owner and then waits for the first line. The line goes
 * to the callee with a duplicate of the descriptor, because libuv cannot pass a handle on; the
 * handle is closed in any case. Every handle counts in @handles; the last close callback frees the
 * object.
 */
#include "agent/pmi/pmi_port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <utlist.h>

#include "agent/endpoint/peer_check.h"
#include "agent/endpoint/port.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"

/* All ranks of a node may connect at the same time. The log gets only the first refusals of a
 * flood. */
enum { CLIENTS_BACKLOG = 4096, REFUSALS_TOLD = 8 };

/* A connection before the first line. */
struct pmi_newcomer {
        uv_tcp_t tcp; /* .data = this */
        struct pmi_newcomer *prev, *next;
        struct pmi_port *port;
        struct tcp_peer peer;
        size_t len;
        char line[PMI_PORT_LINE_MAX + 1];
};

struct pmi_port {
        uv_tcp_t listener; /* .data = this */
        struct pmi_port_ops ops;
        void *ctx;
        struct peer_check *check;
        struct pmi_newcomer *waiting; /* the oldest first */
        unsigned n_waiting, n_refused;
        unsigned handles; /* not closed yet */
        uint32_t number;
};

static void unref_pmi_port(struct pmi_port *p)
{
        if (--p->handles > 0)
                return;
        peer_check_destroy(p->check);
        free(p);
}

static void on_listener_closed(uv_handle_t *h)
{
        unref_pmi_port(h->data);
}

static void on_newcomer_closed(uv_handle_t *h)
{
        struct pmi_newcomer *c = h->data;

        unref_pmi_port(c->port);
        free(c);
}

static void close_newcomer(struct pmi_newcomer *c)
{
        DL_DELETE(c->port->waiting, c);
        c->port->n_waiting--;
        uv_close((uv_handle_t *)&c->tcp, on_newcomer_closed);
}

/* Logs the reason, unless many were logged before. */
static void refuse_newcomer(struct pmi_newcomer *c, const char *why)
{
        struct pmi_port *p = c->port;

        if (p->n_refused++ < REFUSALS_TOLD)
                log_warning(HN_PMI_REFUSED, "refused a connection to PMI_PORT from %s:%u: %s",
                            c->peer.addr, c->peer.port, why);
        close_newcomer(c);
}

/* Hands the connection on; the newcomer ends in any case. */
static void pass_newcomer(struct pmi_newcomer *c, size_t len)
{
        struct error why = { 0 };
        uv_os_fd_t fd = -1;
        int copy;

        uv_fileno((uv_handle_t *)&c->tcp, &fd);
        /* The receiver owns the duplicate; the handle here is closed as any other. */
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0) {
                refuse_newcomer(c, strerror(errno));
                return;
        }
        c->line[len] = '\0';
        if (c->port->ops.claim(c->port->ctx, copy, c->line, len, &why) == 0) {
                close_newcomer(c);
                return;
        }
        fd_close(copy);
        refuse_newcomer(c, why.text);
}

static void on_newcomer_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct pmi_newcomer *c = h->data;

        /* The last byte is for the NUL. */
        *ret = uv_buf_init(c->line + c->len, (unsigned)(PMI_PORT_LINE_MAX - c->len));
}

/* A client waits for the answer, so nothing follows the first line. */
static void on_newcomer_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from UNUSED)
{
        struct pmi_newcomer *c = s->data;
        const char *end;

        if (n < 0) {
                close_newcomer(c);
                return;
        }
        c->len += (size_t)n;
        end = memchr(c->line, '\n', c->len);
        if (end && end + 1 == c->line + c->len)
                pass_newcomer(c, c->len - 1);
        else if (end || c->len == PMI_PORT_LINE_MAX)
                refuse_newcomer(c, "its first message is not that of a client of PMI_PORT");
}

static void admit_newcomer(struct pmi_newcomer *c)
{
        struct error why = { 0 };
        uv_os_fd_t fd = -1;
        int r;

        uv_fileno((uv_handle_t *)&c->tcp, &fd);
        r = peer_check_admit(c->port->check, fd, &c->peer, &why);
        if (r == -ENOTCONN) /* already closed */
                close_newcomer(c);
        else if (r < 0)
                refuse_newcomer(c, why.text);
        else
                uv_read_start((uv_stream_t *)&c->tcp, on_newcomer_alloc, on_newcomer_read);
}

static void on_newcomer(uv_stream_t *listener, int status)
{
        struct pmi_port *p = listener->data;
        struct pmi_newcomer *c;

        if (status < 0)
                return;
        /* The oldest is refused: a client sends the first line at once. */
        if (p->n_waiting == PMI_PORT_WAITING_MAX)
                refuse_newcomer(p->waiting, "too many connections wait");
        c = xcalloc(1, sizeof(*c));
        c->port = p;
        uv_tcp_init(p->listener.loop, &c->tcp);
        c->tcp.data = c;
        p->handles++;
        p->n_waiting++;
        DL_APPEND(p->waiting, c);
        if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0)
                close_newcomer(c);
        else
                admit_newcomer(c);
}

/* --- life cycle ------------------------------------------------------------------------------- */

uint32_t pmi_port_number(const struct pmi_port *p)
{
        return p->number;
}

void pmi_port_close(struct pmi_port *p)
{
        struct pmi_newcomer *c, *next;

        if (!p)
                return;
        DL_FOREACH_SAFE(p->waiting, c, next)
        {
                close_newcomer(c);
        }
        uv_close((uv_handle_t *)&p->listener, on_listener_closed);
}

static int listen_for_clients(struct pmi_port *p)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        static const int on = 1;
        int fd = port_bind((struct sockaddr *)&addr, sizeof(addr), 1), r;

        if (fd < 0)
                return fd;
        p->number = ntohs(addr.sin_port);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* connections inherit this */
        r = uv_tcp_open(&p->listener, fd);
        if (r < 0)
                fd_close(fd);
        return r < 0 ? r : uv_listen((uv_stream_t *)&p->listener, CLIENTS_BACKLOG, on_newcomer);
}

struct pmi_port *pmi_port_open(uv_loop_t *loop, struct pmi_port_ops ops, void *ctx,
                               struct error *err)
{
        struct pmi_port *p = xcalloc(1, sizeof(*p));
        struct strv no_peers = STRV_INIT;
        int r;

        *p = (struct pmi_port){ .ops = ops, .ctx = ctx, .handles = 1 };
        uv_tcp_init(loop, &p->listener);
        p->listener.data = p;
        p->check = peer_check_create(&no_peers, false);
        r = listen_for_clients(p);
        if (r == 0)
                return p;
        err_set(err, -r, "cannot listen on 127.0.0.1: %s", strerror(-r));
        pmi_port_close(p);
        return NULL;
}
