/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer walks PROBING -> CONNECTING -> GREETING -> ECHOING -> SENDING -> RECEIVING -> ENDED, or
 * with NCCL from GREETING to HELPED. end_peer() ends a peer, from any step; the timer then reports,
 * in a later turn of the loop, or ends the peers whose time is over. Every handle of the loop
 * counts in @handles, as does the owner; the last close frees the dialer.
 */
#include "agent/check/pair_dialer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/check/nccl_pair.h"
#include "agent/check/pair_sender.h"
#include "agent/endpoint/probe.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
        SLACK_MS = 3000,  /* beside the time to send, both ways */
        FEW_NS = 1000000, /* too short a time for a rate */
        ROOM = 256 << 10,
        HALF = ENDPOINT_TOKEN / 2,
        GREETING_LEN = sizeof(ENDPOINT_PROBE) - 1 + HALF,
};

/* A target of the order. The object is an element of dialer->peers and stays until the last handle
 * is closed, so requests of libuv may point into the object. */
struct pair_peer {
        struct pair_dialer *dialer;
        struct probe *probe; /* NULL = none under way */
        struct probe_order where;
        uv_tcp_t tcp;
        uv_connect_t connect;
        uv_shutdown_t shutdown;
        struct pair_sender sender;
        struct nccl_pair *helper; /* of HELPED */
        enum { PROBING, CONNECTING, GREETING, HELPED, ECHOING, SENDING, RECEIVING, ENDED } step;
        bool open; /* tcp is a handle of the loop */
        int64_t since_ns;
        uint64_t taken; /* bytes of the step */
        uint64_t first; /* of the first read in RECEIVING, at @first_ns */
        int64_t first_ns;
        unsigned echoes;
        struct measured_target *result;
};

struct pair_dialer {
        uv_loop_t *loop;
        uv_timer_t timer;
        pair_dialer_done done;
        void *ctx;
        uint32_t send_ms, send_bytes;
        const struct measure_nccl *nccl; /* NULL = TCP is measured */
        char why[NCCL_RECORD_WHY];       /* of the last peer with which NCCL has failed */
        struct pair_peer *peers;
        struct measured_target *results;
        uint32_t n, missing;
        unsigned handles;
        bool over;
        char greeting[GREETING_LEN];
};

static void unref_dialer(struct pair_dialer *d)
{
        if (--d->handles > 0)
                return;
        for (uint32_t i = 0; i < d->n; i++)
                strv_finish(&d->peers[i].where.addrs);
        free(d->peers);
        free(d->results);
        free(d);
}

static void on_dialer_closed(uv_handle_t *h)
{
        unref_dialer(h->data);
}

static void on_peer_closed(uv_handle_t *h)
{
        const struct pair_peer *p = h->data;

        unref_dialer(p->dialer);
}

static void on_report_due(uv_timer_t *t);

/* Ends a peer once: with an errno, or with 0 if the measured values count. The end of the last peer
 * starts the timer with 0 ms, so done() is never called below a callback of a peer. */
static void end_peer(struct pair_peer *p, int error)
{
        struct pair_dialer *d = p->dialer;

        if (p->step == ENDED)
                return;
        p->step = ENDED;
        p->result->error = (uint32_t)error;
        probe_cancel(STEAL(&p->probe));
        nccl_pair_cancel(STEAL(&p->helper));
        if (p->open)
                uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
        p->open = false;
        if (!--d->missing && !d->over)
                uv_timer_start(&d->timer, on_report_due, 0, 0);
}

static void fail_nccl(struct pair_peer *p, const char *why)
{
        snprintf(p->dialer->why, sizeof(p->dialer->why), "%s", why);
        end_peer(p, MEASURE_NCCL_FAILED);
}

/* The rate counts behind the first bytes, unless no more bytes came: at the first bytes, sent bytes
 * were still under way. */
static void count_received(struct pair_peer *p, size_t n)
{
        int64_t now = clock_ns();

        if (!p->first && n) {
                p->first = n;
                p->first_ns = now;
        }
        p->taken += n;
        if (now - p->first_ns >= FEW_NS)
                p->result->received = pair_rate(p->taken - p->first, now - p->first_ns);
        else
                p->result->received = pair_rate(p->taken, now - p->since_ns);
}

static void on_report_due(uv_timer_t *t)
{
        struct pair_dialer *d = t->data;

        /* Ends all peers; the measurements so far count. */
        for (uint32_t i = 0; d->missing && i < d->n; i++) {
                struct pair_peer *p = &d->peers[i];

                /* SENDING and RECEIVING have a rate of the bytes so far: a slow link is a result,
                 * and no error. */
                if (p->step == SENDING)
                        p->result->sent = pair_sender_rate(&p->sender);
                if (p->step == RECEIVING)
                        count_received(p, 0);
                if (p->step == HELPED)
                        fail_nccl(p, "NCCL has not answered in time");
                else
                        end_peer(p, p->step >= SENDING ? 0 : ETIMEDOUT);
        }
        /* A peer ended above has started the timer again; the flag and uv_close() stop a second
         * report. */
        d->over = true;
        d->done(d->ctx, d->results, d->n, d->why);
        uv_close((uv_handle_t *)&d->timer, on_dialer_closed);
        unref_dialer(d);
}

/* --- measuring -------------------------------------------------------------------------------- */

static void on_peer_alloc(uv_handle_t *h UNUSED, size_t suggested UNUSED, uv_buf_t *ret)
{
        static char dropped[ROOM];

        *ret = uv_buf_init(dropped, sizeof(dropped));
}

/* Sends a few bytes, and begins to count time and bytes anew. The send buffer is empty here, so a
 * short write is a broken connection. */
static void send_word(struct pair_peer *p, char *data, size_t len)
{
        uv_buf_t piece = uv_buf_init(data, (unsigned)len);

        p->since_ns = clock_ns();
        p->taken = 0;
        if (uv_try_write((uv_stream_t *)&p->tcp, &piece, 1) != (int)len)
                end_peer(p, ECONNRESET);
}

/* The end of the stream is the listener's order to send in turn. */
static void on_sending_over(struct pair_sender *s, int status)
{
        struct pair_peer *p = container_of(s, struct pair_peer, sender);

        if (p->step != SENDING)
                return;
        if (status < 0) {
                end_peer(p, -status);
                return;
        }
        p->result->sent = pair_sender_rate(s);
        p->step = RECEIVING;
        p->taken = 0;
        p->since_ns = clock_ns();
        uv_shutdown(&p->shutdown, (uv_stream_t *)&p->tcp, NULL);
}

/* A single byte is under way at a time, so each read is a round trip. The result begins with the
 * time of the probe, and only becomes shorter. */
static void receive_echo(struct pair_peer *p)
{
        int64_t us = (clock_ns() - p->since_ns) / 1000;

        p->result->latency_us = MIN(p->result->latency_us, (uint32_t)MAX(us, INT64_C(1)));
        if (++p->echoes < MEASURE_ECHOES) {
                send_word(p, (char[]){ "." }, 1);
                return;
        }
        p->step = SENDING;
        pair_sender_start(&p->sender, &p->tcp, p->dialer->send_ms, p->dialer->send_bytes,
                          on_sending_over);
}

/* --- NCCL ------------------------------------------------------------------------------------- */

static void on_helper_done(void *ctx, const struct nccl_record *r)
{
        struct pair_peer *p = ctx;

        p->helper = NULL;
        if (*r->why) {
                fail_nccl(p, r->why);
                return;
        }
        p->result->latency_us = r->latency_us;
        p->result->sent = r->sent;
        p->result->received = r->received;
        end_peer(p, 0);
}

/* The helper owns the connection from here on: the connection must end with the helper. */
static void start_helper(struct pair_peer *p)
{
        struct error err;

        send_word(p, (char[]){ MEASURE_HELPER }, 1);
        if (p->step == ENDED)
                return;
        p->step = HELPED;
        p->helper =
                nccl_pair_start(p->dialer->loop, &p->tcp, p->dialer->nccl, on_helper_done, p, &err);
        if (!p->helper) {
                fail_nccl(p, err.text);
                return;
        }
        uv_close((uv_handle_t *)&p->tcp, on_peer_closed);
        p->open = false;
}

/* --- the connection --------------------------------------------------------------------------- */

/* The listener closes the connection behind the last byte, so the end of the stream is a success in
 * RECEIVING, and a lost peer in any other step. */
static void on_peer_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct pair_peer *p = s->data;

        if (p->step == ENDED)
                return;
        if (n < 0) {
                end_peer(p, p->step == RECEIVING && n == UV_EOF && p->taken ? 0 : ECONNRESET);
        } else if (p->step == RECEIVING) {
                count_received(p, (size_t)n);
        } else if (p->step == GREETING) {
                p->taken += (uint64_t)n;
                if (p->taken < HALF)
                        return;
                if (p->dialer->nccl) {
                        start_helper(p);
                        return;
                }
                p->step = ECHOING;
                send_word(p, (char[]){ "." }, 1);
        } else if (p->step == ECHOING && n) {
                receive_echo(p);
        }
}

static void on_peer_connected(uv_connect_t *req, int status)
{
        struct pair_peer *p = req->data;

        if (p->step != CONNECTING)
                return;
        if (status == 0)
                status = uv_read_start((uv_stream_t *)&p->tcp, on_peer_alloc, on_peer_read);
        if (status < 0) {
                end_peer(p, -status);
                return;
        }
        pair_sender_prepare(&p->tcp);
        p->step = GREETING;
        send_word(p, p->dialer->greeting, GREETING_LEN);
}

/* Opens a new connection to the address of the probe: the probe's connection is closed already. */
static void begin_measuring(struct pair_peer *p)
{
        const char *addr = p->where.addrs.v[p->result->addr];
        struct sockaddr_storage to;
        int r;

        /* The probe has parsed the address before, so either call succeeds. */
        if (uv_ip4_addr(addr, (int)p->where.port, (struct sockaddr_in *)&to) != 0)
                uv_ip6_addr(addr, (int)p->where.port, (struct sockaddr_in6 *)&to);
        uv_tcp_init(p->dialer->loop, &p->tcp);
        p->tcp.data = p->connect.data = p;
        p->open = true;
        p->dialer->handles++;
        p->step = CONNECTING;
        r = uv_tcp_connect(&p->connect, &p->tcp, (struct sockaddr *)&to, on_peer_connected);
        if (r < 0)
                end_peer(p, -r);
}

/* --- probing ---------------------------------------------------------------------------------- */

/* Takes the best address that answers. Without an answer the error of the best address counts. */
static void on_peer_probed(void *ctx, const struct probed *m)
{
        struct pair_peer *p = ctx;
        uint32_t i = 0;

        p->probe = NULL;
        while (i < m->n && m->results[i].error)
                i++;
        if (i == m->n) {
                end_peer(p, m->n ? (int)m->results[0].error : EADDRNOTAVAIL);
                return;
        }
        p->result->addr = i;
        p->result->latency_us = m->results[i].us;
        if (p->dialer->send_bytes)
                begin_measuring(p);
        else
                end_peer(p, 0);
}

struct pair_dialer *pair_dialer_start(uv_loop_t *loop, const struct measure_order *order,
                                      const struct measure_nccl *nccl, pair_dialer_done done,
                                      void *ctx)
{
        struct pair_dialer *d = xcalloc(1, sizeof(*d));
        uint64_t ms = order->timeout_ms + 2 * (uint64_t)order->send_ms + SLACK_MS +
                      (nccl ? MEASURE_NCCL_MS : 0);

        d->loop = loop;
        d->done = done;
        d->ctx = ctx;
        d->send_ms = order->send_ms;
        d->send_bytes = order->send_bytes;
        d->nccl = nccl;
        d->n = d->missing = order->n_targets;
        d->peers = xcalloc(d->n, sizeof(*d->peers));
        d->results = xcalloc(d->n, sizeof(*d->results));
        d->handles = 2; /* the timer and the owner */
        memcpy(d->greeting, ENDPOINT_PROBE, sizeof(ENDPOINT_PROBE) - 1);
        memcpy(d->greeting + sizeof(ENDPOINT_PROBE) - 1, order->token, HALF);
        uv_timer_init(loop, &d->timer);
        d->timer.data = d;
        uv_timer_start(&d->timer, on_report_due, ms, 0);
        for (uint32_t i = 0; i < d->n; i++) {
                struct pair_peer *p = &d->peers[i];
                const struct measure_target *t = &order->targets[i];

                p->dialer = d;
                p->result = &d->results[i];
                p->where.port = t->port;
                p->where.timeout_ms = order->timeout_ms;
                memcpy(p->where.token, order->token, sizeof(p->where.token));
                for (size_t k = 0; k < t->addrs.n; k++)
                        strv_push(&p->where.addrs, t->addrs.v[k]);
                p->probe = probe_start(loop, &p->where, on_peer_probed, p);
        }
        return d;
}

void pair_dialer_cancel(struct pair_dialer *d)
{
        if (!d || d->over)
                return;
        d->over = true;
        for (uint32_t i = 0; i < d->n; i++)
                end_peer(&d->peers[i], ECANCELED);
        uv_close((uv_handle_t *)&d->timer, on_dialer_closed);
        unref_dialer(d);
}
