/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link walks CONNECTING -> GREETING -> PROVING -> OPEN. The greetings are those of
 * wire/noise/dial.h: the peer of a link in PROVING has sent a greeting, which could be a replay,
 * and the first record that opens proves the key. A link belongs to its port until then, so that
 * connections without the key end with the port.
 *
 * Both buffers of the kernel are kept small: what lies there when a node is lost must still be kept
 * by the node before it.
 */
#include "agent/tree/chain_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "agent/endpoint/port.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/codec.h"
#include "wire/noise/dial.h"

enum {
        STRANGERS_MAX = 16,
        GREETING_MS = 5000,
        READ_SIZE = 64 << 10,
        KERNEL_MAX = 256 << 10, /* bytes of each buffer of a connection */
};

struct chain_link {
        struct chain_peer peer;
        struct chain_port *port; /* until the peer is proved; NULL = we connect */
        struct chain_link *prev, *next;
        uv_tcp_t tcp;
        uv_connect_t connect;
        enum { CONNECTING, GREETING, PROVING, OPEN } step;
        bool paused;
        struct dial_stream stream;
        struct buf sealed, frames; /* that have come */
        int64_t since_ns;
};

struct chain_port {
        struct chain_peer peer;
        uv_tcp_t tcp;
        uint32_t number;
        struct chain_link *unproved_links;
        unsigned n;
};

/* A write, with the bytes. */
struct chain_write {
        uv_write_t write;
        struct buf bytes;
};

static void on_link_closed(uv_handle_t *h)
{
        struct chain_link *l = h->data;

        buf_finish(&l->sealed);
        buf_finish(&l->frames);
        free(l);
}

static void leave_port(struct chain_link *l)
{
        if (!l->port)
                return;
        DL_DELETE(l->port->unproved_links, l);
        l->port->n--;
        l->port = NULL;
}

void chain_link_close(struct chain_link *l)
{
        if (!l || uv_is_closing((uv_handle_t *)&l->tcp))
                return;
        leave_port(l);
        uv_close((uv_handle_t *)&l->tcp, on_link_closed);
}

/* The end of a connection without the key is not told. */
static void end_chain_link(struct chain_link *l, int error)
{
        bool unproved = l->port;

        if (uv_is_closing((uv_handle_t *)&l->tcp))
                return;
        chain_link_close(l);
        if (!unproved)
                l->peer.ops->ended(l->peer.ctx, l, error);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void on_link_written(uv_write_t *w, int status)
{
        struct chain_write *o = container_of(w, struct chain_write, write);
        struct chain_link *l = w->handle->data;

        buf_finish(&o->bytes);
        free(o);
        if (uv_is_closing((uv_handle_t *)&l->tcp))
                return;
        if (status < 0)
                end_chain_link(l, -status);
        else if (l->step == OPEN)
                l->peer.ops->written(l->peer.ctx);
}

/* Takes the bytes over. */
static void write_link(struct chain_link *l, struct buf *bytes)
{
        struct chain_write *o = xcalloc(1, sizeof(*o));
        uv_buf_t piece;

        o->bytes = *bytes;
        *bytes = (struct buf)BUF_INIT;
        piece = uv_buf_init((char *)o->bytes.mem + o->bytes.start, (unsigned)buf_len(&o->bytes));
        if (uv_write(&o->write, (uv_stream_t *)&l->tcp, &piece, 1, on_link_written) < 0) {
                buf_finish(&o->bytes);
                free(o);
        }
}

void chain_link_send(struct chain_link *l, const void *data, size_t len)
{
        struct buf out = BUF_INIT;

        dial_put(&l->stream, DIAL_DATA, data, len, &out);
        write_link(l, &out);
}

size_t chain_link_unsent(const struct chain_link *l)
{
        return uv_stream_get_write_queue_size((const uv_stream_t *)&l->tcp);
}

static void send_link_number(struct chain_link *l)
{
        struct buf b = BUF_INIT;

        put_u32(&b, l->peer.number);
        chain_link_send(l, buf_data(&b), buf_len(&b));
        buf_finish(&b);
}

/* --- receiving -------------------------------------------------------------------------------- */

/* Takes the greeting of the peer. 1: taken, 0: more bytes are needed, or -errno. */
static int take_link_greeting(struct chain_link *l)
{
        struct buf answer = BUF_INIT;
        int r;

        if (buf_len(&l->sealed) < DIAL_GREETING)
                return 0;
        if (l->port) {
                r = dial_answer(&l->stream, l->peer.key, buf_data(&l->sealed),
                                buf_reserve(&answer, DIAL_GREETING));
                buf_advance(&answer, DIAL_GREETING);
                if (r == 0)
                        write_link(l, &answer);
                buf_finish(&answer);
        } else {
                r = dial_take_answer(&l->stream, buf_data(&l->sealed));
                if (r == 0)
                        send_link_number(l);
        }
        if (r < 0)
                return r;
        buf_consume(&l->sealed, DIAL_GREETING);
        l->step = PROVING;
        return 1;
}

/* Takes the first record, a number. */
static int take_link_number(struct chain_link *l, const struct dial_record *record)
{
        struct reader r = READER_INIT(record->body, record->len);
        uint32_t number = take_u32(&r);
        struct chain_port *port = l->port;

        if (!take_done(&r))
                return -EPROTO;
        l->step = OPEN;
        buf_consume(&l->sealed, record->whole);
        if (port) {
                leave_port(l);
                send_link_number(l);
        }
        l->peer.ops->proved(l->peer.ctx, l, number);
        return 1;
}

/* Opens the next record. 1: taken, 0: more bytes are needed, or -errno. */
static int take_link_record(struct chain_link *l)
{
        struct dial_record record;
        int r = dial_take(&l->stream, &l->sealed, &record);

        if (r <= 0)
                return r;
        if (record.type != DIAL_DATA)
                return -EPROTO;
        if (l->step == PROVING)
                return take_link_number(l, &record);
        buf_append(&l->frames, record.body, record.len);
        buf_consume(&l->sealed, record.whole);
        return 1;
}

/* Delivers whole frames. 0, or -EPROTO. */
static int deliver_link_frames(struct chain_link *l)
{
        struct frame f;
        int r = 0;

        while (!l->paused && !uv_is_closing((uv_handle_t *)&l->tcp) &&
               (r = frame_peek(&l->frames, &f, NULL)) > 0) {
                l->paused = !l->peer.ops->frame(l->peer.ctx, &f);
                frame_consume(&l->frames, &f);
        }
        return MIN(r, 0);
}

static void take_link_bytes(struct chain_link *l)
{
        int r = 1;

        while (r > 0 && !uv_is_closing((uv_handle_t *)&l->tcp)) {
                r = l->step == GREETING ? take_link_greeting(l) : take_link_record(l);
                if (r > 0 && l->step == OPEN)
                        r = deliver_link_frames(l) < 0 ? -EPROTO : 1;
        }
        if (r < 0)
                end_chain_link(l, -r);
        else if (l->paused && !uv_is_closing((uv_handle_t *)&l->tcp))
                uv_read_stop((uv_stream_t *)&l->tcp);
}

static void on_link_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct chain_link *l = h->data;
        void *to = buf_reserve(&l->sealed, READ_SIZE);

        *ret = uv_buf_init(to, to ? READ_SIZE : 0);
}

static void on_link_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct chain_link *l = s->data;

        if (n < 0) {
                end_chain_link(l, n == UV_EOF ? 0 : (int)-n);
        } else if (n > 0) {
                buf_advance(&l->sealed, (size_t)n);
                take_link_bytes(l);
        }
}

void chain_link_resume(struct chain_link *l)
{
        if (!l->paused)
                return;
        l->paused = false;
        if (deliver_link_frames(l) < 0)
                end_chain_link(l, EPROTO);
        else if (!l->paused && !uv_is_closing((uv_handle_t *)&l->tcp))
                uv_read_start((uv_stream_t *)&l->tcp, on_link_alloc, on_link_read);
}

/* --- connections ------------------------------------------------------------------------------ */

static struct chain_link *create_link(const struct chain_peer *p)
{
        struct chain_link *l = xcalloc(1, sizeof(*l));

        l->peer = *p;
        l->since_ns = clock_ns();
        uv_tcp_init(p->loop, &l->tcp);
        l->tcp.data = l;
        return l;
}

static void prepare_link(struct chain_link *l)
{
        static const int most = KERNEL_MAX;
        int fd;

        uv_tcp_nodelay(&l->tcp, 1);
        if (uv_fileno((const uv_handle_t *)&l->tcp, &fd) == 0) {
                setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
                setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
        }
}

static void on_link_connected(uv_connect_t *c, int status)
{
        struct chain_link *l = c->handle->data;
        struct buf greeting = BUF_INIT;

        if (uv_is_closing((uv_handle_t *)&l->tcp))
                return;
        if (status == 0)
                status = uv_read_start((uv_stream_t *)&l->tcp, on_link_alloc, on_link_read);
        if (status < 0) {
                end_chain_link(l, -status);
                return;
        }
        prepare_link(l);
        dial_greet(&l->stream, l->peer.key, buf_reserve(&greeting, DIAL_GREETING));
        buf_advance(&greeting, DIAL_GREETING);
        l->step = GREETING;
        write_link(l, &greeting);
}

struct chain_link *chain_link_connect(const struct chain_peer *p, const char *addr, uint32_t port)
{
        struct sockaddr_storage to = { 0 };
        struct chain_link *l;

        if (uv_ip4_addr(addr, (int)port, (struct sockaddr_in *)&to) < 0 &&
            uv_ip6_addr(addr, (int)port, (struct sockaddr_in6 *)&to) < 0)
                return NULL;
        l = create_link(p);
        if (uv_tcp_connect(&l->connect, &l->tcp, (struct sockaddr *)&to, on_link_connected) == 0)
                return l;
        chain_link_close(l);
        return NULL;
}

/* --- the port --------------------------------------------------------------------------------- */

/* The oldest connection without the key makes room: the peer greets at once. */
static void on_port_connection(uv_stream_t *s, int status)
{
        struct chain_port *o = s->data;
        struct chain_link *l;

        if (status < 0)
                return;
        l = create_link(&o->peer);
        l->step = GREETING;
        l->port = o;
        DL_APPEND(o->unproved_links, l);
        if (++o->n > STRANGERS_MAX)
                chain_link_close(o->unproved_links);
        if (uv_accept(s, (uv_stream_t *)&l->tcp) < 0 ||
            uv_read_start((uv_stream_t *)&l->tcp, on_link_alloc, on_link_read) < 0)
                chain_link_close(l);
        else
                prepare_link(l);
}

static void on_port_closed(uv_handle_t *h)
{
        free(h->data);
}

struct chain_port *chain_port_open(const struct chain_peer *p, int *ret)
{
        struct held_port port = PORT_INIT;
        struct chain_port *o;

        port_hold(&port);
        if (port.fd < 0) {
                *ret = -errno;
                return NULL;
        }
        fd_close(port.lock); /* of a port that stays bound */
        o = xcalloc(1, sizeof(*o));
        o->peer = *p;
        o->number = port.number;
        uv_tcp_init(p->loop, &o->tcp);
        o->tcp.data = o;
        *ret = uv_tcp_open(&o->tcp, port.fd);
        if (*ret < 0)
                fd_close(port.fd);
        else
                *ret = uv_listen((uv_stream_t *)&o->tcp, STRANGERS_MAX, on_port_connection);
        if (*ret == 0)
                return o;
        chain_port_close(o);
        return NULL;
}

uint32_t chain_port_number(const struct chain_port *o)
{
        return o->number;
}

void chain_port_check(struct chain_port *o)
{
        int64_t now = clock_ns();
        struct chain_link *l, *next;

        DL_FOREACH_SAFE(o->unproved_links, l, next)
        {
                if (now - l->since_ns > GREETING_MS * INT64_C(1000000))
                        chain_link_close(l);
        }
}

void chain_port_close(struct chain_port *o)
{
        struct chain_link *l, *next;

        if (!o)
                return;
        DL_FOREACH_SAFE(o->unproved_links, l, next)
        {
                chain_link_close(l);
        }
        uv_close((uv_handle_t *)&o->tcp, on_port_closed);
}
