/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in: on_read() -> take_tcp_bytes() -> take_commands(), which parses as long as the
 * connection is not blocked (an answer under way, back pressure, too many unread answers). Only
 * tcp_conn_steer() decides whether to read on; call it after any change of these conditions.
 * @parsing guards against recursion, because the relay may answer within a request.
 *
 * Bytes out: tcp_conn_put() gathers answers in the endpoint's buffer; tcp_conn_flush() writes them
 * with one system call. Bytes not taken by the socket are copied and queued with uv_write().
 *
 * A connection whose node must be asked is not read before the answer. The loop tells of its first
 * bytes, because on_no_alloc() gives no memory for them; on_first_bytes() looks at them without
 * taking them, answers a probe, and else asks.
 *
 * Close connections through tcp_conn_close() only; memory goes in the close callback.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <utlist.h>

#include "agent/endpoint/endpoint_tcp_private.h"
#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        WRITES_MAX = 1024,      /* writes without an acknowledgement of the store */
        UNREAD_PAUSE = 4 << 20, /* bytes of answers not read by the client */
        SMALL = 4 << 10,        /* memory kept by an idle connection */
        SHARE_MIN = 16 << 10,   /* smaller rests of answers are copied for each client */
        PROBE_SIZE = sizeof(ENDPOINT_PROBE) - 1 + ENDPOINT_TOKEN / 2,
        TOLD_MAX = 64,
};

/* A rest of an answer, queued until the socket takes more. */
struct tcp_write {
        uv_write_t req;
        struct tcp_shared *shared; /* NULL = the bytes follow */
        unsigned char bytes[];
};

/* --- the end ---------------------------------------------------------------------------------- */

/* Drops a reference; NULL does nothing. */
static void unref_shared(struct tcp_shared *s)
{
        if (s && --s->refs == 0)
                free(s);
}

void tcp_conn_forget_shared(struct endpoint_tcp *e)
{
        unref_shared(e->shared);
        e->shared = NULL;
}

/* The client is destroyed here and not earlier, because the relay may be calling it. */
static void on_closed(uv_handle_t *h)
{
        struct tcp_conn *c = h->data;
        struct endpoint_tcp *e = c->endpoint;

        if (c->relay)
                relay_client_destroy(c->relay);
        tcpstore_parser_destroy(c->parser);
        buf_finish(&c->in);
        buf_finish(&c->request.expect);
        free(c);
        endpoint_tcp_unref(e);
}

void tcp_conn_close(struct tcp_conn *c)
{
        if (c->closing)
                return;
        if (c->endpoint->writer == c)
                /* Answers before the close, such as that to a probe, still go out. */
                tcp_conn_flush(c->endpoint);
        if (c->closing) /* the flush itself may have closed the connection */
                return;
        c->closing = true;
        endpoint_tcp_forget(c);
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

void tcp_conn_fail(struct tcp_conn *c, const char *why)
{
        struct endpoint_tcp *e = c->endpoint;

        if (!c->proven) /* no client of PyTorch as far as is known */
                peer_check_reject(e->peer_check, &c->peer, 0, why);
        else if (e->told++ < TOLD_MAX)
                log_line(LOG_WARN,
                         strchr(c->peer.addr, ':')
                                 ? "closed connection to the store from [%s]:%u: %s"
                                 : "closed connection to the store from %s:%u: %s",
                         c->peer.addr, c->peer.port, why);
        tcp_conn_close(c);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* Steers, because fewer unread bytes may unblock the connection. */
static void on_written(uv_write_t *req, int status)
{
        struct tcp_write *o = container_of(req, struct tcp_write, req);
        struct tcp_conn *c = req->handle->data;

        unref_shared(o->shared);
        free(o);
        if (status < 0)
                tcp_conn_close(c);
        else
                tcp_conn_steer(c);
}

/* Returns the copy of @p made for other clients in this turn, or a new one. */
static struct tcp_shared *share_answer(struct endpoint_tcp *e, const void *p, size_t len)
{
        struct tcp_shared *s = e->shared;

        if (!s || s->len != len || memcmp(s->bytes, p, len) != 0) {
                s = malloc(sizeof(*s) + len);
                if (!s)
                        return NULL;
                s->refs = 1;
                s->len = len;
                memcpy(s->bytes, p, len);
                tcp_conn_forget_shared(e);
                e->shared = s;
        }
        s->refs++;
        return s;
}

/* Queues @p without the first @done bytes, which have been written. @shared is a copy of all bytes,
 * taken over; NULL = the rest is copied. */
static void queue_rest(struct tcp_conn *c, const void *p, size_t len, size_t done,
                       struct tcp_shared *shared)
{
        struct tcp_write *o = malloc(sizeof(*o) + (shared ? 0 : len - done));
        char *rest;
        uv_buf_t piece;

        if (o) {
                o->shared = shared;
                if (!shared)
                        memcpy(o->bytes, (const char *)p + done, len - done);
                rest = shared ? (char *)shared->bytes + done : (char *)o->bytes;
                piece = uv_buf_init(rest, (unsigned)(len - done));
                if (uv_write(&o->req, (uv_stream_t *)&c->tcp, &piece, 1, on_written) == 0)
                        return;
        }
        /* A client without the rest would wait for ever. */
        unref_shared(shared);
        free(o);
        tcp_conn_close(c);
}

/* Writes two pieces in order; the rest that does not go out at once is queued. */
static void send_pieces(struct tcp_conn *c, const void *p, size_t len, const void *more,
                        size_t more_len)
{
        uv_buf_t pieces[2] = { uv_buf_init((char *)p, (unsigned)len),
                               uv_buf_init((char *)more, (unsigned)more_len) };
        /* uv_try_write() takes no empty piece in front. */
        unsigned first = len ? 0 : 1, n = more_len ? 2 - first : 1;
        int r = uv_try_write((uv_stream_t *)&c->tcp, pieces + first, n);
        size_t done = r > 0 ? (size_t)r : 0;

        if (r < 0 && r != UV_EAGAIN) {
                tcp_conn_close(c);
                return;
        }
        if (done < len)
                queue_rest(c, p, len, done, NULL);
        if (!c->closing && more_len && done < len + more_len)
                queue_rest(c, more, more_len, done > len ? done - len : 0,
                           more_len >= SHARE_MIN ? share_answer(c->endpoint, more, more_len)
                                                 : NULL);
}

/* Writes the writer's answers. The buffer is given up first, because closing would flush it
 * again. */
void tcp_conn_flush(struct endpoint_tcp *e)
{
        struct tcp_conn *c = e->writer;
        size_t len = e->out_len;

        e->writer = NULL;
        e->out_len = 0;
        if (c && len && !c->closing)
                send_pieces(c, e->out, len, NULL, 0);
}

void tcp_conn_put(struct tcp_conn *c, const void *data, size_t len)
{
        struct endpoint_tcp *e = c->endpoint;
        size_t before;

        if (c->closing || !len)
                return;
        /* The buffer holds answers of one connection at a time. */
        if (e->writer != c)
                tcp_conn_flush(e);
        before = e->out_len;
        /* Large answers are not copied into the buffer. */
        if (before + len > ENDPOINT_WRITE_SIZE) {
                e->writer = NULL;
                e->out_len = 0;
                send_pieces(c, e->out, before, data, len);
                return;
        }
        e->writer = c;
        memcpy(e->out + before, data, len);
        e->out_len += len;
}

/* --- bytes of the client ---------------------------------------------------------------------- */

/* True when no more commands may be taken now. */
static bool is_conn_blocked(const struct tcp_conn *c)
{
        return c->request.state == TCP_ASKED || c->endpoint->paused ||
               c->request.unfinished >= WRITES_MAX ||
               uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp) >= UNREAD_PAUSE;
}

/* The first half of the token shows that the probe is of this job; the second half, in the answer,
 * shows that the endpoint is. */
static void answer_probe(struct tcp_conn *c, const char *token)
{
        if (memcmp(token, c->endpoint->token, ENDPOINT_TOKEN / 2) != 0) {
                tcp_conn_fail(c, "another job's token");
                return;
        }
        tcp_conn_put(c, c->endpoint->token + ENDPOINT_TOKEN / 2, ENDPOINT_TOKEN / 2);
        tcp_conn_close(c);
}

/* 1: was the probe, the connection is closed. 0: may become the probe. -1: is not. */
static int take_probe(struct tcp_conn *c, const struct buf *in)
{
        size_t n = MIN(buf_len(in), sizeof(ENDPOINT_PROBE) - 1);

        if (c->proven || memcmp(buf_data(in), ENDPOINT_PROBE, n) != 0)
                return -1;
        if (buf_len(in) < PROBE_SIZE)
                return 0;
        answer_probe(c, (const char *)buf_data(in) + n);
        return 1;
}

/* Runs whole commands until the bytes end, or a command must wait for an answer: answers go back in
 * the order of commands. */
static void take_commands(struct tcp_conn *c, struct buf *in)
{
        struct tcpstore_command cmd;
        struct error err;
        int r = buf_len(in) ? take_probe(c, in) : 0;

        c->parsing = true;
        /* -1 = no probe: commands may be taken. */
        while (r < 0 && !c->closing && !is_conn_blocked(c)) {
                r = tcpstore_parser_next(c->parser, in, c->first, &cmd, &err);
                if (r < 0) {
                        tcp_conn_fail(c, err.text);
                } else if (r > 0) {
                        c->proven = true;
                        tcp_command_run(c, &cmd);
                        tcpstore_parser_consume(c->parser, in);
                        r = -1;
                }
        }
        c->parsing = false;
}

/* Parses commands in place; the beginning of an incomplete command is kept. */
static void take_tcp_bytes(struct tcp_conn *c, unsigned char *bytes, size_t n)
{
        struct buf lent = { .mem = bytes, .end = n, .cap = n };

        /* The parser tells old clients from new ones by the first piece. */
        if (!c->first)
                c->first = n;
        /* In place, without a copy, as most commands come whole. */
        if (buf_len(&c->in) == 0 && !is_conn_blocked(c)) {
                take_commands(c, &lent);
                if (!c->closing && buf_len(&lent))
                        buf_append(&c->in, buf_data(&lent), buf_len(&lent));
        } else {
                buf_append(&c->in, bytes, n);
                take_commands(c, &c->in);
        }
        if (buf_failed(&c->in) && !c->closing)
                tcp_conn_fail(c, "out of memory");
}

/* One buffer for all connections: the bytes are taken before the next read. */
static void on_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct tcp_conn *c = h->data;

        *ret = uv_buf_init((char *)c->endpoint->read,
                           (unsigned)unfinished_read_size(&c->endpoint->unfinished, &c->part,
                                                          ENDPOINT_READ_SIZE));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
        struct tcp_conn *c = s->data;

        if (n < 0) {
                tcp_conn_close(c);
        } else if (n > 0) {
                take_tcp_bytes(c, (unsigned char *)from->base, (size_t)n);
                tcp_conn_steer(c);
        }
}

/* A connection that is not read is in @still, for the end of a pause. */
static void set_reading(struct tcp_conn *c, bool want)
{
        if (want == !c->still) /* no change */
                return;
        c->still = !want;
        if (want) {
                DL_DELETE2(c->endpoint->still, c, still_link.prev, still_link.next);
                uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
        } else {
                DL_APPEND2(c->endpoint->still, c, still_link.prev, still_link.next);
                uv_read_stop((uv_stream_t *)&c->tcp);
        }
}

void tcp_conn_steer(struct tcp_conn *c)
{
        struct unfinished *u = &c->endpoint->unfinished;

        /* While commands are taken, the caller of take_commands() steers. */
        if (c->closing || c->parsing)
                return;
        if (buf_len(&c->in) && !is_conn_blocked(c))
                take_commands(c, &c->in);
        if (c->closing)
                return;
        if (buf_len(&c->in) == 0 && c->in.cap > SMALL)
                buf_finish(&c->in);
        unfinished_track(u, &c->part, buf_len(&c->in), is_conn_blocked(c));
        /* A blocked connection reads on up to a buffer, so that the end of file is seen. */
        set_reading(c, unfinished_may_read(u, &c->part) &&
                               (!is_conn_blocked(c) ||
                                (!c->endpoint->paused && buf_len(&c->in) < ENDPOINT_READ_SIZE)));
}

static struct tcp_conn *conn_of_part(const struct unfinished_part *p)
{
        return container_of(p, struct tcp_conn, part);
}

static void steer_tcp_part(struct unfinished_part *p)
{
        tcp_conn_steer(conn_of_part(p));
}

static void fail_tcp_part(struct unfinished_part *p, const char *why)
{
        tcp_conn_fail(conn_of_part(p), why);
}

static void name_tcp_part(const struct unfinished_part *p, char *to, size_t size)
{
        const struct tcp_conn *c = conn_of_part(p);

        snprintf(to, size, "%s, port %u", c->peer.addr, c->peer.port);
}

const struct unfinished_ops tcp_conn_unfinished = { steer_tcp_part, fail_tcp_part, name_tcp_part };

/* --- the beginning ---------------------------------------------------------------------------- */

/* Makes the connection a client of the store. */
static void serve_connection(struct tcp_conn *c)
{
        static const struct relay_client_ops relay_ops = { .reply = tcp_command_reply };

        c->parser = tcpstore_parser_create(c->endpoint->limits);
        c->relay = relay_client_create(c->endpoint->relay, relay_ops, c);
        if (c->parser && c->relay)
                uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
        else
                tcp_conn_close(c);
}

/* Returns -1 for a connection without a descriptor. */
static int get_tcp_fd(const struct tcp_conn *c)
{
        uv_os_fd_t fd;

        return uv_fileno((const uv_handle_t *)&c->tcp, &fd) < 0 ? -1 : fd;
}

/* The node of the other end has answered. An end that has closed meanwhile needs no words. */
static void on_owner_judged(struct peer_wait *w, const struct owner *o, const char *nodes)
{
        struct tcp_conn *c = container_of(w, struct tcp_conn, wait);
        const char *node = *nodes ? nodes : "its node";
        char why[320];

        if (peer_check_disconnected(get_tcp_fd(c))) {
                tcp_conn_close(c);
                return;
        }
        switch (o->verdict) {
        case OWNER_USER:
                serve_connection(c);
                return;
        case OWNER_OTHER:
                snprintf(why, sizeof(why), "the process belongs to uid %u of %s", o->uid, node);
                break;
        case OWNER_NONE:
                snprintf(why, sizeof(why),
                         "%s has no such socket in the network of its agent; ranks in a network of "
                         "their own need -o net.store_peers=node",
                         node);
                peer_check_reject(c->endpoint->peer_check, &c->peer, HN_NO_SUCH_SOCKET, why);
                tcp_conn_close(c);
                return;
        default:
                snprintf(why, sizeof(why), "%s did not tell the owner in time", node);
        }
        tcp_conn_fail(c, why);
}

/* libuv reads nothing then, and calls on_first_bytes() with an error. */
static void on_no_alloc(uv_handle_t *h UNUSED, size_t suggested UNUSED, uv_buf_t *ret)
{
        *ret = uv_buf_init(NULL, 0);
}

/* Bytes have come, or the end of file. */
static void on_first_bytes(uv_stream_t *s, ssize_t status UNUSED, const uv_buf_t *to UNUSED)
{
        struct tcp_conn *c = s->data;
        char bytes[PROBE_SIZE];
        int fd = get_tcp_fd(c);
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        uv_read_stop(s);
        if (n <= 0) {
                tcp_conn_close(c);
        } else if (n == PROBE_SIZE &&
                   memcmp(bytes, ENDPOINT_PROBE, sizeof(ENDPOINT_PROBE) - 1) == 0) {
                /* Takes the bytes that were only looked at: closing with unread bytes would send a
                 * reset. */
                recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
                answer_probe(c, bytes + sizeof(ENDPOINT_PROBE) - 1);
        } else {
                c->wait.judged = on_owner_judged;
                peer_owners_add(c->endpoint->owners, &c->wait, &c->peer.ends, c->peer.port,
                                c->peer.own_port);
        }
}

/* 0: admitted. 1: its node must be asked. Negative: to be closed. */
static int admit_connection(struct tcp_conn *c)
{
        struct error why;
        int r, fd = get_tcp_fd(c);

        if (fd < 0)
                return -EBADF;
        r = peer_check_admit(c->endpoint->peer_check, fd, &c->peer, &why);
        if (r == -EPERM)
                peer_check_reject(c->endpoint->peer_check, &c->peer, 0, why.text);
        return r;
}

void tcp_conn_accept(struct endpoint_tcp *e, uv_stream_t *listener)
{
        struct tcp_conn *c = xcalloc(1, sizeof(*c));
        int r;

        c->endpoint = e;
        c->request.unanswered = 1; /* odd from the beginning */
        c->tcp.data = c;
        uv_tcp_init(listener->loop, &c->tcp);
        e->handles++;
        DL_APPEND(e->conns.list, c);
        unfinished_add(&e->unfinished, &c->part);
        e->conns.n++;
        r = uv_accept(listener, (uv_stream_t *)&c->tcp);
        if (r == 0 && endpoint_tcp_is_crowded(e))
                r = -EMFILE;
        if (r == 0)
                r = admit_connection(c);
        if (r == 0)
                serve_connection(c);
        else if (r > 0)
                uv_read_start((uv_stream_t *)&c->tcp, on_no_alloc, on_first_bytes);
        else
                tcp_conn_close(c);
}
