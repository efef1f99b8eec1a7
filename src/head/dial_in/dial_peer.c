/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer has an array for the greeting. After the right greeting the peer gets buffers, and the
 * next bytes are records. Records to the node gather in @out; libuv has a single write at a time,
 * from @in_flight. Any violation closes the peer at once, without an answer.
 */
#include "head/dial_in/dial_peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macros.h"

enum {
        DIAL_READ_SIZE = 64 << 10,
        OUT_MAX = 1 << 20, /* bytes waiting in a connection; more stay with the node */
        KEEPALIVE_S = 5,   /* the loss of a waiting node's machine is noticed in 20 s */
        KEEPALIVE_PROBES = 3,
};

static void on_peer_closed(uv_handle_t *h)
{
        struct dial_peer *p = h->data;

        buf_finish(&p->in);
        buf_finish(&p->out);
        buf_finish(&p->in_flight);
        p->state = PEER_FREE;
        p->ops->closed(p);
}

void dial_peer_close(struct dial_peer *p)
{
        if (p->state == PEER_FREE || p->state == PEER_CLOSING)
                return;
        p->state = PEER_CLOSING;
        uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
}

/* Closes the peer after a report: broken() still sees the state. */
static void break_peer(struct dial_peer *p, enum dial_peer_fault fault, const char *text)
{
        if (p->state == PEER_FREE || p->state == PEER_CLOSING)
                return;
        p->ops->broken(p, fault, text);
        dial_peer_close(p);
}

/* --- to the node ------------------------------------------------------------------------------ */

static void flush_peer(struct dial_peer *p);

static void on_peer_written(uv_write_t *req, int status)
{
        struct dial_peer *p = req->data;

        p->writing = false;
        buf_clear(&p->in_flight);
        /* Closing has cancelled the write. */
        if (status == UV_ECANCELED || p->state == PEER_CLOSING)
                return;
        if (status < 0) {
                break_peer(p, PEER_CLOSED, uv_strerror(status));
                return;
        }
        flush_peer(p);
        if (p->state == PEER_JOINED && !p->ended)
                p->ops->writable(p);
}

/* An error of the first try is left to uv_write(), for a report from the loop. */
static void flush_peer(struct dial_peer *p)
{
        struct buf empty = p->in_flight;
        uv_buf_t piece;
        uv_os_fd_t fd;
        int r;

        if (buf_failed(&p->out)) { /* the node would miss bytes: the next read ends the peer */
                if (uv_fileno((uv_handle_t *)&p->tcp, &fd) == 0)
                        shutdown(fd, SHUT_RDWR);
                return;
        }
        if (p->writing || !buf_len(&p->out))
                return;
        piece = uv_buf_init((char *)p->out.mem + p->out.start, (unsigned)buf_len(&p->out));
        r = uv_try_write((uv_stream_t *)&p->tcp, &piece, 1);
        if (r > 0)
                buf_consume(&p->out, (size_t)r);
        if (!buf_len(&p->out))
                return;
        p->in_flight = p->out;
        p->out = empty;
        piece = uv_buf_init((char *)p->in_flight.mem + p->in_flight.start,
                            (unsigned)buf_len(&p->in_flight));
        p->write.data = p;
        p->writing = uv_write(&p->write, (uv_stream_t *)&p->tcp, &piece, 1, on_peer_written) == 0;
}

void dial_peer_send(struct dial_peer *p, enum dial_type type, const void *body, size_t len)
{
        if (p->state != PEER_JOINED || p->ended)
                return;
        dial_put(&p->stream, type, body, len, &p->out);
        flush_peer(p);
}

void dial_peer_notify(struct dial_peer *p, const struct dial_end *m)
{
        if (p->state != PEER_JOINED || p->ended)
                return;
        dial_end_put(&p->stream, DIAL_NOTICE, m, &p->out);
        flush_peer(p);
}

void dial_peer_end(struct dial_peer *p, enum dial_type type, const struct dial_end *m)
{
        if (p->state != PEER_JOINED || p->ended)
                return;
        dial_end_put(&p->stream, type, m, &p->out);
        p->ended = true;
        p->since_ns = clock_ns();
        flush_peer(p);
}

void dial_peer_refuse(struct dial_peer *p, uint8_t code, const char *fmt, ...)
{
        struct dial_end m = { .code = code };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(m.text, sizeof(m.text), fmt, ap);
        va_end(ap);
        log_line(LOG_INFO, "refused %s at %s: %s", p->join.name, p->address, m.text);
        dial_peer_end(p, DIAL_REFUSED, &m);
}

void dial_peer_send_bytes(struct dial_peer *p, struct buf *out)
{
        /* For a peer that has ended the bytes are dropped, so the loop ends. */
        while (buf_len(out) && dial_peer_waiting(p) < OUT_MAX) {
                size_t n = MIN(buf_len(out), (size_t)DIAL_DATA_MAX);

                dial_peer_send(p, DIAL_DATA, buf_data(out), n);
                buf_consume(out, n);
        }
}

size_t dial_peer_waiting(const struct dial_peer *p)
{
        return buf_len(&p->out) + buf_len(&p->in_flight);
}

/* --- from the node ---------------------------------------------------------------------------- */

/* Answers a whole greeting. Only the first record rules out a recorded greeting. */
static void take_greeting(struct dial_peer *p)
{
        uint8_t answer[DIAL_GREETING];

        if (p->got < DIAL_GREETING)
                return;
        if (dial_answer(&p->stream, p->psk, p->greeting, answer) < 0) {
                break_peer(p, PEER_FOREIGN, "another secret or protocol");
                return;
        }
        p->state = p->ops->proof ? PEER_PROVING : PEER_JOINING;
        buf_append(&p->out, answer, sizeof(answer));
        flush_peer(p);
}

bool dial_peer_read_now(struct dial_peer *p)
{
        uv_os_fd_t fd;
        ssize_t n;

        if (p->state != PEER_GREETING || uv_fileno((uv_handle_t *)&p->tcp, &fd) < 0)
                return false;
        /* Without libuv, which keeps no bytes of a stream. */
        n = recv(fd, p->greeting + p->got, sizeof(p->greeting) - p->got, MSG_DONTWAIT);
        p->got += n > 0 ? (size_t)n : 0;
        take_greeting(p);
        return p->state != PEER_GREETING;
}

static void take_join(struct dial_peer *p, const struct dial_record *r)
{
        if (dial_join_decode(&p->join, r) < 0) {
                break_peer(p, PEER_FOREIGN, "a malformed first record");
                return;
        }
        p->state = PEER_JOINED;
        p->ops->joined(p, &p->join);
}

/* Has the owner check the credential. Nothing is read until dial_peer_prove(). */
static void take_proof(struct dial_peer *p, const struct dial_record *r)
{
        if (r->type != DIAL_PROOF) {
                break_peer(p, PEER_FOREIGN, "no credential of munge");
                return;
        }
        p->paused = true;
        uv_read_stop((uv_stream_t *)&p->tcp);
        p->ops->proof(p, r);
}

/* Takes whole records by the state of the peer: proof, JOIN, then records of the link. */
static void take_records(struct dial_peer *p)
{
        struct dial_record r;
        int got = 0;

        while (p->state >= PEER_PROVING && p->state <= PEER_JOINED && !p->ended && !p->paused &&
               (got = dial_take(&p->stream, &p->in, &r)) > 0) {
                if (p->state == PEER_PROVING)
                        take_proof(p, &r);
                else if (p->state == PEER_JOINING)
                        take_join(p, &r);
                else
                        p->ops->record(p, &r);
                buf_consume(&p->in, r.whole);
        }
        /* Before JOIN: a replayed greeting is right, but the sender cannot seal a record. */
        if (got < 0)
                break_peer(p, p->state == PEER_JOINED ? PEER_CLOSED : PEER_REPLAYED,
                           "a damaged record");
        if (p->ended)
                buf_clear(&p->in); /* the node is reading the end */
        else if (!buf_len(&p->in))
                buf_finish(&p->in);
}

static void on_peer_alloc(uv_handle_t *h, size_t hint UNUSED, uv_buf_t *ret)
{
        struct dial_peer *p = h->data;
        char *mem;

        if (p->state == PEER_GREETING) {
                *ret = uv_buf_init((char *)p->greeting + p->got,
                                   (unsigned)(sizeof(p->greeting) - p->got));
                return;
        }
        mem = buf_reserve(&p->in, DIAL_READ_SIZE);
        /* Without room libuv reports ENOBUFS, and the peer ends. */
        *ret = uv_buf_init(mem, mem ? DIAL_READ_SIZE : 0);
}

/* Bytes of the peer. The greeting has a fixed size and room of its own, so an unknown peer costs no
 * other memory. */
static void on_peer_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf UNUSED)
{
        struct dial_peer *p = s->data;

        if (n < 0) {
                break_peer(p, p->state == PEER_JOINED ? PEER_CLOSED : PEER_SILENT,
                           n == UV_EOF ? "closed the connection" : uv_strerror((int)n));
                return;
        }
        if (p->state == PEER_GREETING) {
                p->got += (size_t)n;
                take_greeting(p);
                return;
        }
        buf_advance(&p->in, (size_t)n);
        take_records(p);
}

/* --- the connection --------------------------------------------------------------------------- */

/* Writes the peer's address, an address of IPv4 without "::ffff:". */
static void read_peer_address(struct dial_peer *p)
{
        static const char mapped[] = "::ffff:";
        const size_t n = sizeof(mapped) - 1;
        struct sockaddr_storage a;
        int len = sizeof(a);
        char *text = p->address;

        snprintf(text, sizeof(p->address), "an unknown address");
        if (uv_tcp_getpeername(&p->tcp, (struct sockaddr *)&a, &len) < 0)
                return;
        uv_ip_name((struct sockaddr *)&a, text, sizeof(p->address));
        if (!strncmp(text, mapped, n) && strchr(text, '.'))
                memmove(text, text + n, strlen(text + n) + 1);
}

/* Sends small records at once, and has the kernel look for the other machine: every 5 s, 3
 * times. */
static void set_keepalive(struct dial_peer *p)
{
        uv_os_fd_t fd;
        int every = KEEPALIVE_S, probes = KEEPALIVE_PROBES;

        uv_tcp_nodelay(&p->tcp, 1);
        uv_tcp_keepalive(&p->tcp, 1, KEEPALIVE_S);
        if (uv_fileno((uv_handle_t *)&p->tcp, &fd) == 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
                setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        }
}

static void resume_peer(struct dial_peer *p)
{
        p->paused = false;
        uv_read_start((uv_stream_t *)&p->tcp, on_peer_alloc, on_peer_read);
        /* Records already here would wait for the next byte. */
        take_records(p);
}

void dial_peer_pause(struct dial_peer *p, bool pause)
{
        if (p->state != PEER_JOINED || p->paused == pause)
                return;
        if (!pause) {
                resume_peer(p);
                return;
        }
        p->paused = true;
        uv_read_stop((uv_stream_t *)&p->tcp);
}

void dial_peer_prove(struct dial_peer *p, const char *credential)
{
        if (p->state != PEER_PROVING)
                return;
        p->state = PEER_JOINING;
        dial_put(&p->stream, DIAL_PROOF, credential, strlen(credential), &p->out);
        flush_peer(p);
        resume_peer(p);
}

void dial_peer_refute(struct dial_peer *p, const char *why)
{
        if (p->state == PEER_PROVING)
                break_peer(p, PEER_FOREIGN, why);
}

int dial_peer_adopt(struct dial_peer *p, uv_loop_t *loop, int fd, const struct dial_stream *stream,
                    struct buf *in)
{
        int r;

        uv_tcp_init(loop, &p->tcp);
        p->tcp.data = p;
        p->state = PEER_JOINED;
        p->stream = *stream;
        p->in = *in;
        *in = (struct buf)BUF_INIT;
        r = uv_tcp_open(&p->tcp, fd);
        if (r < 0) {
                fd_close(fd);
                dial_peer_close(p);
                return r;
        }
        /* From now on the agent watches the head, for longer than keepalive would. */
        uv_tcp_keepalive(&p->tcp, 0, 0);
        resume_peer(p);
        return 0;
}

int dial_peer_accept(struct dial_peer *p, uv_stream_t *listener)
{
        int r;

        uv_tcp_init(listener->loop, &p->tcp);
        p->tcp.data = p;
        p->state = PEER_GREETING;
        p->writing = p->ended = p->paused = false;
        p->got = 0;
        p->since_ns = clock_ns();
        r = uv_accept(listener, (uv_stream_t *)&p->tcp);
        if (r == 0) {
                read_peer_address(p);
                set_keepalive(p);
                r = uv_read_start((uv_stream_t *)&p->tcp, on_peer_alloc, on_peer_read);
        }
        if (r < 0)
                dial_peer_close(p);
        return r;
}
