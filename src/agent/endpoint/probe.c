/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every candidate walks CONNECTING -> ASKING -> DONE; a refusal leads through CLOSING (a handle of
 * the loop must be closed before it is used again) to PAUSED, from where the timer tries again.
 * finish_candidate() ends one and counts @missing down; callbacks then call report_if_done(). The
 * first answer sets @open_since, which makes later refusals final and may shorten the deadline.
 */
#include "agent/endpoint/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/sockdiag.h"
#include "base/macros.h"
#include "base/memory.h"

enum {
        AGAIN_MS = 2, /* doubled each time up to */
        AGAIN_MOST_MS = 32,
        GRACE_MS = 100,  /* for the other candidates after the first answer, at least */
        GRACE_TIMES = 4, /* times the duration of that first answer */
        HUNG_MS = 20,    /* a look later than this: the process hung */
        HALF = ENDPOINT_TOKEN / 2,
        QUESTION = sizeof(ENDPOINT_PROBE) - 1 + HALF,
};

enum step {
        PAUSED, /* refused, to be tried again */
        CONNECTING,
        ASKING,
        CLOSING, /* this connection, then PAUSED */
        DONE,
};

struct candidate {
        struct probe *probe;
        uv_tcp_t tcp;
        uv_connect_t connect;
        uv_write_t write;
        struct sockaddr_storage addr;
        enum step step;
        bool open;      /* tcp is a handle of the loop */
        uint64_t since; /* the begin of the present try */
        char answer[HALF];
        size_t n_answer;
        struct probe_result result;
};

struct probe {
        uv_loop_t *loop;
        uv_timer_t timer;
        probe_done done;
        void *ctx;
        uint64_t deadline, again_ms;
        uint64_t next_look;  /* when the timer is due, to notice a pause of this process */
        uint64_t open_since; /* a candidate has answered: the endpoint is there; 0 = not yet */
        char question[QUESTION], answer[HALF];
        struct candidate *all;
        uint32_t n, missing;
        unsigned handles;
        bool over;
};

static void unref_probe(struct probe *p)
{
        if (--p->handles > 0)
                return;
        free(p->all);
        free(p);
}

static void on_timer_closed(uv_handle_t *h)
{
        unref_probe(h->data);
}

static void on_tcp_closed(uv_handle_t *h)
{
        struct candidate *c = h->data;

        c->open = false;
        if (c->step == CLOSING)
                c->step = PAUSED;
        unref_probe(c->probe);
}

/* on_tcp_closed() follows if the handle is open; else nothing happens. */
static void close_candidate(struct candidate *c)
{
        if (c->open && !uv_is_closing((uv_handle_t *)&c->tcp))
                uv_close((uv_handle_t *)&c->tcp, on_tcp_closed);
}

void probe_cancel(struct probe *p)
{
        if (!p || p->over)
                return;
        p->over = true;
        for (uint32_t i = 0; i < p->n; i++) {
                /* Callbacks of a canceled request see the step and do nothing. */
                p->all[i].step = DONE;
                close_candidate(&p->all[i]);
        }
        uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

/* Ends a candidate. The caller reports the end of the last one, because it may be walking along the
 * list. */
static void finish_candidate(struct candidate *c, int error)
{
        if (c->step == DONE)
                return;
        c->step = DONE;
        c->result.error = (uint32_t)error;
        close_candidate(c);
        c->probe->missing--;
}

static void retry_paused(struct probe *p);

/* The endpoint is open now: candidates that refuse after this will always refuse. */
static void accept_answer(struct candidate *c)
{
        struct probe *p = c->probe;
        uint64_t grace;

        c->result.us = (uint32_t)((uv_hrtime() - c->since) / 1000);
        finish_candidate(c, 0);
        if (p->open_since)
                return;
        p->open_since = uv_hrtime();
        grace = MAX(GRACE_MS * (uint64_t)1000000, GRACE_TIMES * (p->open_since - c->since));
        p->deadline = MIN(p->deadline, p->open_since + grace);
        retry_paused(p);
}

/* Reports the results, once, when no candidate is missing. The probe may be freed in the call. */
static void report_if_done(struct probe *p)
{
        struct probed m = { .n = p->n };
        probe_done done = p->done;
        void *ctx = p->ctx;

        if (p->missing || p->over)
                return;
        m.results = xcalloc(MAX(p->n, 1U), sizeof(*m.results));
        for (uint32_t i = 0; i < p->n; i++)
                m.results[i] = p->all[i].result;
        /* Before the call: the caller may begin another probe. */
        probe_cancel(p);
        done(ctx, &m);
        free(m.results);
}

/* Which of our interfaces has the address from which the connection was made. Nothing found leaves
 * the name empty. */
static void find_local_iface(struct candidate *c)
{
        struct sockaddr_storage local;
        unsigned char mine[16], other[16];
        int len = sizeof(local);
        struct ifaddrs *all;

        if (uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&local, &len) < 0 ||
            !sockdiag_address((struct sockaddr *)&local, mine) || getifaddrs(&all) < 0)
                return;
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
                if (!i->ifa_addr || !sockdiag_address(i->ifa_addr, other) ||
                    memcmp(mine, other, 16) != 0)
                        continue;
                memcpy(c->result.iface, i->ifa_name,
                       strnlen(i->ifa_name, sizeof(c->result.iface) - 1));
                break;
        }
        freeifaddrs(all);
}

static void on_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct candidate *c = h->data;

        /* Never more than the answer. */
        *ret = uv_buf_init(c->answer + c->n_answer, (unsigned)(HALF - c->n_answer));
}

/* A part of the answer. Any other byte than expected means another program at the address, or
 * another job. */
static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct candidate *c = s->data;
        struct probe *p = c->probe;

        if (c->step != ASKING)
                return;
        if (n < 0) {
                finish_candidate(c, n == UV_EOF ? ECONNRESET : (int)-n);
        } else {
                c->n_answer += (size_t)n;
                if (memcmp(c->answer, p->answer, c->n_answer) != 0) {
                        finish_candidate(c, EPROTO);
                } else if (c->n_answer == HALF) {
                        accept_answer(c);
                }
        }
        report_if_done(p);
}

static void on_written(uv_write_t *req, int status)
{
        struct candidate *c = req->data;

        if (status < 0 && c->step == ASKING) {
                finish_candidate(c, -status);
                report_if_done(c->probe);
        }
}

/* Sends the half of the token that proves this node, and waits for the other half. */
static void ask_candidate(struct candidate *c)
{
        uv_buf_t piece = uv_buf_init(c->probe->question, QUESTION);
        int r;

        c->step = ASKING;
        c->write.data = c;
        r = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
        if (r == 0)
                r = uv_write(&c->write, (uv_stream_t *)&c->tcp, &piece, 1, on_written);
        if (r < 0)
                finish_candidate(c, -r);
}

/* A refused connection is tried again until the endpoint is known to be open: endpoint and probes
 * are ordered at the same time. */
static void on_connect(uv_connect_t *req, int status)
{
        struct candidate *c = req->data;

        if (c->step != CONNECTING)
                return;
        /* A try that began before the endpoint was open is tried once more. */
        if (status == UV_ECONNREFUSED &&
            !(c->probe->open_since && c->since >= c->probe->open_since)) {
                c->result.error = ECONNREFUSED;
                c->step = CLOSING;
                close_candidate(c);
        } else if (status < 0) {
                finish_candidate(c, -status);
        } else {
                ask_candidate(c);
        }
        report_if_done(c->probe);
}

/* Begins a connection to a candidate. The interface is the kernel's choice for the way there. */
static void try_candidate(struct candidate *c)
{
        int r;

        uv_tcp_init(c->probe->loop, &c->tcp);
        c->tcp.data = c->connect.data = c;
        c->open = true;
        c->probe->handles++;
        c->step = CONNECTING;
        c->since = uv_hrtime();
        r = uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&c->addr, on_connect);
        if (r < 0)
                finish_candidate(c, -r);
        else if (!*c->result.iface)
                find_local_iface(c);
}

static void retry_paused(struct probe *p)
{
        for (uint32_t i = 0; i < p->n; i++)
                if (p->all[i].step == PAUSED)
                        try_candidate(&p->all[i]);
}

static void on_timer(uv_timer_t *timer);

/* Notes when the timer is due: a look much later means that the process was stopped. */
static void arm_probe_timer(struct probe *p, uint64_t ms)
{
        p->next_look = uv_hrtime() + ms * 1000000;
        uv_timer_start(&p->timer, on_timer, ms, 0);
}

/* After a pause of this process answers may be there that have not been read yet. */
static void on_timer(uv_timer_t *timer)
{
        struct probe *p = timer->data;
        uint64_t now = uv_hrtime();
        bool late;

        if (now > p->next_look + HUNG_MS * (uint64_t)1000000)
                p->deadline += now - p->next_look;
        late = now >= p->deadline;
        /* The last refusal says more than a timeout. */
        for (uint32_t i = 0; late && i < p->n; i++)
                finish_candidate(&p->all[i],
                                 p->all[i].result.error ? (int)p->all[i].result.error : ETIMEDOUT);
        retry_paused(p);
        report_if_done(p);
        if (p->over)
                return;
        p->again_ms = MIN(p->again_ms * 2, (uint64_t)AGAIN_MOST_MS);
        arm_probe_timer(p, p->again_ms);
}

struct probe *probe_start(uv_loop_t *loop, const struct probe_order *order, probe_done done,
                          void *ctx)
{
        struct probe *p = xcalloc(1, sizeof(*p));

        p->loop = loop;
        p->done = done;
        p->ctx = ctx;
        p->deadline = uv_hrtime() + order->timeout_ms * (uint64_t)1000000;
        memcpy(p->question, ENDPOINT_PROBE, sizeof(ENDPOINT_PROBE) - 1);
        memcpy(p->question + sizeof(ENDPOINT_PROBE) - 1, order->token, HALF);
        memcpy(p->answer, order->token + HALF, HALF);
        p->n = p->missing = (uint32_t)order->addrs.n;
        p->all = xcalloc(MAX(p->n, 1U), sizeof(*p->all));
        uv_timer_init(loop, &p->timer);
        p->timer.data = p;
        p->handles = 1;
        for (uint32_t i = 0; i < p->n; i++) {
                struct candidate *c = &p->all[i];
                const char *addr = order->addrs.v[i];

                c->probe = p;
                if (uv_ip4_addr(addr, (int)order->port, (struct sockaddr_in *)&c->addr) == 0 ||
                    uv_ip6_addr(addr, (int)order->port, (struct sockaddr_in6 *)&c->addr) == 0)
                        try_candidate(c);
                else
                        finish_candidate(c, EINVAL);
        }
        /* Reported from the loop even when everything is known already. */
        p->again_ms = AGAIN_MS;
        arm_probe_timer(p, p->missing ? AGAIN_MS : 0);
        return p;
}
