/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection walks GREETING -> ECHOING -> DROPPING -> SENDING and is closed, or is given to a
 * helper in ECHOING. Any program may connect and stay silent: connections in GREETING are counted
 * apart, and the oldest makes room for a new connection. The timer ends connections at their limit,
 * and at last the listener. Every libuv handle counts in @handles; the last close callback frees
 * the listener.
 */
#include "agent/check/pair_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "agent/check/nccl_pair.h"
#include "agent/check/pair_sender.h"
#include "agent/endpoint/port.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

enum {
        LISTEN_MS = 60000,  /* after the last order */
        LOOK_MS = 250,      /* of the timer */
        GREETING_MS = 2000, /* for the token */
        SLACK_MS = 10000,   /* beside the time to send, both ways */
        CONNS_MAX = 512,    /* with a greeting, and as many without */
        HALF = ENDPOINT_TOKEN / 2,
        GREETING_LEN = sizeof(ENDPOINT_PROBE) - 1 + HALF,
        ROOM = 256 << 10,
};

/* A connection. The memory belongs to the handle @tcp, and is freed by the close callback. */
struct pair_conn {
        struct pair_listener *listener;
        struct pair_conn *prev, *next;
        uv_tcp_t tcp;
        struct pair_sender sender;
        enum { GREETING, ECHOING, DROPPING, SENDING } step;
        size_t taken; /* bytes of the step */
        int64_t since_ns;
        char greeting[GREETING_LEN];
        char echo[MEASURE_ECHOES];
};

/* The owner, the port and the timer hold one handle each, and so does each connection. After
 * LISTEN_MS a listener has @port 0, and waits for pair_listener_close(). */
struct pair_listener {
        uv_loop_t *loop;
        uv_tcp_t tcp;
        uv_timer_t timer;
        struct pair_conn *conns;
        unsigned n_silent, n_greeted, handles; /* n_silent: in GREETING */
        bool over;
        uint32_t port;
        int64_t until_ns;
        uint32_t send_ms, send_bytes;
        const struct measure_nccl *nccl;
        char question[GREETING_LEN], answer[HALF];
};

static void unref_listener(struct pair_listener *l)
{
        if (--l->handles == 0)
                free(l);
}

/* --- connections ------------------------------------------------------------------------------ */

static void on_conn_closed(uv_handle_t *h)
{
        struct pair_conn *c = h->data;

        unref_listener(c->listener);
        free(c);
}

/* Returns the counter of connections to which @c belongs. */
static unsigned *count_of(struct pair_conn *c)
{
        return c->step == GREETING ? &c->listener->n_silent : &c->listener->n_greeted;
}

/* Leaves the list at once: a closing connection counts no more for CONNS_MAX. Calls after the first
 * have no effect. */
static void close_pair_conn(struct pair_conn *c)
{
        if (uv_is_closing((uv_handle_t *)&c->tcp))
                return;
        DL_DELETE(c->listener->conns, c);
        --*count_of(c);
        uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
}

/* A short answer goes at once, or the peer does not wait for answers. */
static void send_pair_reply(struct pair_conn *c, char *data, size_t len)
{
        uv_buf_t piece = uv_buf_init(data, (unsigned)len);

        if (uv_try_write((uv_stream_t *)&c->tcp, &piece, 1) != (int)len)
                close_pair_conn(c);
}

/* Closes the connection also after an error or at the limit of time: the dialer takes any end as
 * the end of the bytes. */
static void on_all_sent(struct pair_sender *s, int status UNUSED)
{
        close_pair_conn(container_of(s, struct pair_conn, sender));
}

/* The peer has sent all bytes. */
static void answer_end(struct pair_conn *c)
{
        const struct pair_listener *l = c->listener;

        if (c->step != DROPPING || !l->send_bytes) {
                close_pair_conn(c);
                return;
        }
        c->step = SENDING;
        uv_read_stop((uv_stream_t *)&c->tcp);
        pair_sender_start(&c->sender, &c->tcp, l->send_ms, l->send_bytes, on_all_sent);
}

/* The buffer has no more bytes than the step may read: bytes behind the greeting stay in the kernel
 * for the next step, and bytes behind MEASURE_HELPER for the helper. */
static void on_pair_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        static char dropped[ROOM];
        struct pair_conn *c = h->data;

        if (c->step == GREETING)
                *ret = uv_buf_init(c->greeting + c->taken, (unsigned)(GREETING_LEN - c->taken));
        else if (c->step == ECHOING)
                *ret = uv_buf_init(c->echo + c->taken,
                                   c->taken ? (unsigned)(MEASURE_ECHOES - c->taken) : 1);
        else
                *ret = uv_buf_init(dropped, sizeof(dropped));
}

/* Compares the whole greeting: an answer to a part would reveal how many letters are right. */
static void check_pair_greeting(struct pair_conn *c, size_t n)
{
        struct pair_listener *l = c->listener;

        c->taken += n;
        if (c->taken < GREETING_LEN)
                return;
        if (memcmp(c->greeting, l->question, GREETING_LEN) != 0 || l->n_greeted == CONNS_MAX) {
                close_pair_conn(c);
                return;
        }
        l->n_silent--;
        l->n_greeted++;
        c->step = ECHOING;
        c->taken = 0;
        send_pair_reply(c, l->answer, HALF);
}

/* The connection must end with the helper. */
static void give_to_helper(struct pair_conn *c)
{
        if (measure_nccl_is_set(c->listener->nccl))
                nccl_pair_serve(&c->tcp, c->listener->nccl);
        close_pair_conn(c);
}

/* Returns the bytes as received. Several bytes of a read get a single write. */
static void return_echoes(struct pair_conn *c, size_t n)
{
        char *from = c->echo + c->taken;

        if (!c->taken && *from == MEASURE_HELPER) {
                give_to_helper(c);
                return;
        }
        c->taken += n;
        if (c->taken == MEASURE_ECHOES)
                c->step = DROPPING;
        send_pair_reply(c, from, n);
}

/* Reads in DROPPING have no branch: the bytes are lost on purpose. */
static void on_pair_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct pair_conn *c = s->data;

        if (n == UV_EOF)
                answer_end(c);
        else if (n < 0)
                close_pair_conn(c);
        else if (n > 0 && c->step == GREETING)
                check_pair_greeting(c, (size_t)n);
        else if (n > 0 && c->step == ECHOING)
                return_echoes(c, (size_t)n);
}

/* Closes the oldest silent connection when there are too many: a peer greets at once. */
static void close_oldest_silent(struct pair_listener *l)
{
        struct pair_conn *c;

        if (l->n_silent <= CONNS_MAX)
                return;
        DL_FOREACH(l->conns, c)
        {
                if (c->step == GREETING) {
                        close_pair_conn(c);
                        return;
                }
        }
}

/* The connection is in the list before uv_accept(), so close_pair_conn() handles every failure. */
static void on_pair_connection(uv_stream_t *s, int status)
{
        struct pair_listener *l = s->data;
        struct pair_conn *c;

        if (status < 0 || l->over)
                return;
        c = xcalloc(1, sizeof(*c));
        c->listener = l;
        c->since_ns = clock_ns();
        uv_tcp_init(l->loop, &c->tcp);
        c->tcp.data = c;
        l->handles++;
        l->n_silent++;
        DL_APPEND(l->conns, c);
        close_oldest_silent(l);
        if (uv_accept(s, (uv_stream_t *)&c->tcp) < 0 ||
            uv_read_start((uv_stream_t *)&c->tcp, on_pair_alloc, on_pair_read) < 0)
                close_pair_conn(c);
        else
                pair_sender_prepare(&c->tcp);
}

/* --- the listener ----------------------------------------------------------------------------- */

static void on_listener_closed(uv_handle_t *h)
{
        unref_listener(h->data);
}

/* Closes everything but the object, which the owner frees by pair_listener_close(). */
static void close_port(struct pair_listener *l)
{
        struct pair_conn *c, *next;

        if (!l->port)
                return;
        l->port = 0;
        DL_FOREACH_SAFE(l->conns, c, next)
        {
                close_pair_conn(c);
        }
        uv_close((uv_handle_t *)&l->tcp, on_listener_closed);
        uv_close((uv_handle_t *)&l->timer, on_listener_closed);
}

/* The time of a connection counts from accept() over all steps. A tick of the timer serves all
 * connections, so a limit may be exceeded by LOOK_MS. */
static void on_pair_tick(uv_timer_t *t)
{
        struct pair_listener *l = t->data;
        int64_t now = clock_ns();
        struct pair_conn *c, *next;

        DL_FOREACH_SAFE(l->conns, c, next)
        {
                int64_t ms = c->step == GREETING ? GREETING_MS : 2 * l->send_ms + SLACK_MS;

                if (now - c->since_ns > ms * 1000000)
                        close_pair_conn(c);
        }
        if (now > l->until_ns)
                close_port(l);
}

struct pair_listener *pair_listener_open(uv_loop_t *loop, const struct measure_nccl *nccl,
                                         struct error *err)
{
        struct held_port port = PORT_INIT;
        struct pair_listener *l;
        int r = -EADDRINUSE;

        port_hold(&port);
        if (port.fd < 0) {
                err_set(err, errno, "cannot open a port: %s", strerror(errno));
                return NULL;
        }
        fd_close(port.lock); /* a port that stays bound */
        l = xcalloc(1, sizeof(*l));
        l->loop = loop;
        l->nccl = nccl;
        l->port = port.number;
        l->handles = 3; /* port, timer and owner */
        uv_tcp_init(loop, &l->tcp);
        uv_timer_init(loop, &l->timer);
        l->tcp.data = l->timer.data = l;
        /* libuv owns the descriptor from here on, unless the call fails. */
        r = uv_tcp_open(&l->tcp, port.fd);
        if (r < 0)
                fd_close(port.fd);
        else
                r = uv_listen((uv_stream_t *)&l->tcp, CONNS_MAX, on_pair_connection);
        if (r < 0) {
                err_set(err, -r, "cannot listen on port %u: %s", port.number, strerror(-r));
                pair_listener_close(l);
                return NULL;
        }
        l->until_ns = clock_ns() + LISTEN_MS * INT64_C(1000000);
        uv_timer_start(&l->timer, on_pair_tick, LOOK_MS, LOOK_MS);
        return l;
}

uint32_t pair_listener_port(const struct pair_listener *l)
{
        return l->port;
}

void pair_listener_renew(struct pair_listener *l, const struct measure_order *order)
{
        memcpy(l->question, ENDPOINT_PROBE, sizeof(ENDPOINT_PROBE) - 1);
        memcpy(l->question + sizeof(ENDPOINT_PROBE) - 1, order->token, HALF);
        memcpy(l->answer, order->token + HALF, HALF);
        if (order->send_bytes) {
                l->send_ms = order->send_ms;
                l->send_bytes = order->send_bytes;
        }
        l->until_ns = clock_ns() + LISTEN_MS * INT64_C(1000000);
}

void pair_listener_close(struct pair_listener *l)
{
        if (!l || l->over)
                return;
        l->over = true;
        close_port(l);
        unref_listener(l);
}
