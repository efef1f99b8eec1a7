/* SPDX-License-Identifier: Apache-2.0 */
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
#include "base/strv.h"

enum {
        AGAIN_MS = 2, /* doubled each time up to */
        AGAIN_MOST_MS = 32,
        GRACE_MS = 100,  /* for the others once one has answered, at least */
        GRACE_TIMES = 4, /* as long as that one took */
        HUNG_MS = 20,    /* a look that is later than that: it was us */
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
        bool open; /* tcp is a handle of the loop */
        uint64_t since;
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
        uint64_t next_look;
        uint64_t open_since; /* a candidate has answered: the endpoint is there; 0 = not yet */
        char question[QUESTION], answer[HALF];
        struct candidate *all;
        uint32_t n, missing;
        unsigned handles;
        bool over;
};

static void unref(struct probe *r)
{
        if (--r->handles > 0)
                return;
        free(r->all);
        free(r);
}

static void timer_closed(uv_handle_t *h)
{
        unref(h->data);
}

static void tcp_closed(uv_handle_t *h)
{
        struct candidate *c = h->data;

        c->open = false;
        if (c->step == CLOSING)
                c->step = PAUSED;
        unref(c->probe);
}

static void close_tcp(struct candidate *c)
{
        if (c->open && !uv_is_closing((uv_handle_t *)&c->tcp))
                uv_close((uv_handle_t *)&c->tcp, tcp_closed);
}

void probe_cancel(struct probe *r)
{
        if (!r || r->over)
                return;
        r->over = true;
        for (uint32_t i = 0; i < r->n; i++) {
                r->all[i].step = DONE;
                close_tcp(&r->all[i]);
        }
        uv_close((uv_handle_t *)&r->timer, timer_closed);
}

static void report(struct probe *r)
{
        struct probed m = { .results = xcalloc(r->n ? r->n : 1, sizeof(*m.results)), .n = r->n };
        probe_done done = r->done;
        void *ctx = r->ctx;

        for (uint32_t i = 0; i < r->n; i++)
                m.results[i] = r->all[i].result;
        probe_cancel(r);
        done(ctx, &m);
        free(m.results);
}

/* The last candidate's end ends all, but not under the hands of who still walks along them. */
static void finish(struct candidate *c, int error)
{
        if (c->step == DONE)
                return;
        c->step = DONE;
        c->result.error = (uint32_t)error;
        close_tcp(c);
        c->probe->missing--;
}

static void retry(struct probe *r);

/* The endpoint is open, so whoever refuses from now on will refuse for ever. */
static void answered(struct candidate *c)
{
        struct probe *r = c->probe;
        uint64_t grace;

        c->result.us = (uint32_t)((uv_hrtime() - c->since) / 1000);
        finish(c, 0);
        if (r->open_since)
                return;
        r->open_since = uv_hrtime();
        grace = MAX(GRACE_MS * (uint64_t)1000000, GRACE_TIMES * (r->open_since - c->since));
        r->deadline = MIN(r->deadline, r->open_since + grace);
        retry(r);
}

static void look(struct probe *r)
{
        if (!r->missing && !r->over)
                report(r);
}

/* Which of our interfaces has the address from which the connection was made. */
static void find_iface(struct candidate *c)
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

        *ret = uv_buf_init(c->answer + c->n_answer, (unsigned)(HALF - c->n_answer));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct candidate *c = s->data;
        struct probe *r = c->probe;

        if (c->step != ASKING)
                return;
        if (n < 0) {
                finish(c, n == UV_EOF ? ECONNRESET : (int)-n);
        } else {
                c->n_answer += (size_t)n;
                if (memcmp(c->answer, r->answer, c->n_answer) != 0) {
                        finish(c, EPROTO);
                } else if (c->n_answer == HALF) {
                        answered(c);
                }
        }
        look(r);
}

static void on_written(uv_write_t *req, int status)
{
        struct candidate *c = req->data;

        if (status < 0 && c->step == ASKING) {
                finish(c, -status);
                look(c->probe);
        }
}

static void ask(struct candidate *c)
{
        uv_buf_t piece = uv_buf_init(c->probe->question, QUESTION);
        int r;

        c->step = ASKING;
        c->write.data = c;
        r = uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
        if (r == 0)
                r = uv_write(&c->write, (uv_stream_t *)&c->tcp, &piece, 1, on_written);
        if (r < 0)
                finish(c, -r);
}

static void on_connect(uv_connect_t *req, int status)
{
        struct candidate *c = req->data;

        if (c->step != CONNECTING)
                return;
        if (status == UV_ECONNREFUSED &&
            !(c->probe->open_since && c->since >= c->probe->open_since)) {
                c->result.error = ECONNREFUSED;
                c->step = CLOSING;
                close_tcp(c);
        } else if (status < 0) {
                finish(c, -status);
        } else {
                ask(c);
        }
        look(c->probe);
}

static void try(struct candidate *c)
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
                finish(c, -r);
        else if (!*c->result.iface)
                find_iface(c);
}

static void retry(struct probe *r)
{
        for (uint32_t i = 0; i < r->n; i++)
                if (r->all[i].step == PAUSED)
                        try(&r->all[i]);
}

static void on_timer(uv_timer_t *timer);

static void look_again(struct probe *r, uint64_t ms)
{
        r->next_look = uv_hrtime() + ms * 1000000;
        uv_timer_start(&r->timer, on_timer, ms, 0);
}

/* When it was us who hung, answers may be here that nobody has read yet. */
static void on_timer(uv_timer_t *timer)
{
        struct probe *r = timer->data;
        uint64_t now = uv_hrtime();
        bool late;

        if (now > r->next_look + HUNG_MS * (uint64_t)1000000)
                r->deadline += now - r->next_look;
        late = now >= r->deadline;
        for (uint32_t i = 0; late && i < r->n; i++)
                finish(&r->all[i],
                       r->all[i].result.error ? (int)r->all[i].result.error : ETIMEDOUT);
        retry(r);
        look(r);
        if (r->over)
                return;
        r->again_ms = MIN(r->again_ms * 2, (uint64_t)AGAIN_MOST_MS);
        look_again(r, r->again_ms);
}

static bool read_address(struct candidate *c, const char *text, uint32_t port)
{
        return uv_ip4_addr(text, (int)port, (struct sockaddr_in *)&c->addr) == 0 ||
               uv_ip6_addr(text, (int)port, (struct sockaddr_in6 *)&c->addr) == 0;
}

struct probe *probe_start(uv_loop_t *loop, const struct probe_order *order, probe_done done,
                          void *ctx)
{
        struct probe *r = xcalloc(1, sizeof(*r));

        r->loop = loop;
        r->done = done;
        r->ctx = ctx;
        r->deadline = uv_hrtime() + order->timeout_ms * (uint64_t)1000000;
        memcpy(r->question, ENDPOINT_PROBE, sizeof(ENDPOINT_PROBE) - 1);
        memcpy(r->question + sizeof(ENDPOINT_PROBE) - 1, order->token, HALF);
        memcpy(r->answer, order->token + HALF, HALF);
        r->n = r->missing = (uint32_t)order->addrs.n;
        r->all = xcalloc(r->n ? r->n : 1, sizeof(*r->all));
        uv_timer_init(loop, &r->timer);
        r->timer.data = r;
        r->handles = 1;
        for (uint32_t i = 0; i < r->n; i++) {
                r->all[i].probe = r;
                if (read_address(&r->all[i], order->addrs.v[i], order->port))
                        try(&r->all[i]);
                else
                        finish(&r->all[i], EINVAL);
        }
        /* Even when all is known already it is told later, not under the caller's hands. */
        r->again_ms = AGAIN_MS;
        look_again(r, r->missing ? AGAIN_MS : 0);
        return r;
}
