/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round asks the addresses one after the other: connect_next() opens a connection, and a refusal
 * closes it; on_connection_closed() goes on with the next address, or ends the round. Everything
 * else than a refusal ends the round at once: a server that is there, but not ready, is asked again
 * in the next round. The timer is the pause between two rounds, and the limit of a round.
 *
 * A thread of libuv looks for a file: the file system may not answer. A process in a PID namespace
 * of its own making cannot make threads, and libuv would abort.
 */
#include "agent/ready/rank_probe.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ready/http_status.h"
#include "base/memory.h"

enum {
        PAUSE_MS = 100,
        PAUSE_MOST_MS = 1000,
        PAUSE_PART = 10,  /* of the time since the start */
        ROUND_MS = 10000, /* for the answer of a server that has accepted */
        REST_MS = 200,    /* for the rest of it, once the status is there */
        ADDRS_MAX = 32,
};

struct rank_probe {
        struct rank_probe_order order; /* owns the path */
        void (*ready)(void *ctx, uint32_t rank);
        void *ctx;
        uint32_t rank;
        uv_loop_t *loop;
        uv_timer_t timer;
        uint64_t since;
        struct sockaddr_storage *addrs;
        size_t n_addrs, next; /* @next: to be asked */
        struct {
                uv_tcp_t tcp;
                uv_connect_t connect;
                uv_write_t write;
                bool is_open, is_refused;
                char *request;
                char answer[HTTP_STATUS_BYTES];
                size_t n_answer;
                int status; /* as of http_status_read() */
        } connection;
        uv_fs_t look;
        unsigned uses; /* handles and requests with libuv */
        bool ended;
};

/* Each handle and each request of libuv holds the probe; the last one frees the memory. */
static void unref_rank_probe(struct rank_probe *p)
{
        if (--p->uses > 0)
                return;
        free((char *)p->order.path);
        free(p->connection.request);
        free(p->addrs);
        free(p);
}

/* --- addresses -------------------------------------------------------------------------------- */

static void add_rank_address(struct rank_probe *p, const void *addr, size_t len)
{
        struct sockaddr_storage *to = &p->addrs[p->n_addrs++];

        memcpy(to, addr, len);
        if (to->ss_family == AF_INET6)
                ((struct sockaddr_in6 *)to)->sin6_port = htons(p->order.port);
        else
                ((struct sockaddr_in *)to)->sin_port = htons(p->order.port);
}

/* A server may listen on one address of the node only, so loopback and all other addresses are
 * asked, at most ADDRS_MAX. */
static void collect_rank_addresses(struct rank_probe *p)
{
        const struct sockaddr_in here = { .sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct sockaddr_in6 here6 = { .sin6_family = AF_INET6,
                                            .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        struct ifaddrs *all;

        p->addrs = xcalloc(ADDRS_MAX, sizeof(*p->addrs));
        add_rank_address(p, &here, sizeof(here));
        add_rank_address(p, &here6, sizeof(here6));
        if (getifaddrs(&all) < 0)
                return;
        for (const struct ifaddrs *i = all; i && p->n_addrs < ADDRS_MAX; i = i->ifa_next) {
                if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
                        continue;
                if (i->ifa_addr->sa_family == AF_INET)
                        add_rank_address(p, i->ifa_addr, sizeof(struct sockaddr_in));
                else if (i->ifa_addr->sa_family == AF_INET6)
                        add_rank_address(p, i->ifa_addr, sizeof(struct sockaddr_in6));
        }
        freeifaddrs(all);
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void begin_round(uv_timer_t *timer);

/* A rank that needs long is asked less often: the pause is a tenth of the time so far. */
static void end_round(struct rank_probe *p)
{
        uint64_t pause = (uv_now(p->loop) - p->since) / PAUSE_PART;

        pause = MAX(pause, (uint64_t)PAUSE_MS);
        uv_timer_start(&p->timer, begin_round, MIN(pause, (uint64_t)PAUSE_MOST_MS), 0);
}

/* The caller may be freed in the call. */
static void tell_ready(struct rank_probe *p)
{
        void (*ready)(void *ctx, uint32_t rank) = p->ready;
        uint32_t rank = p->rank;
        void *ctx = p->ctx;

        rank_probe_end(p);
        ready(ctx, rank);
}

static void connect_next(struct rank_probe *p);

static void on_connection_closed(uv_handle_t *h)
{
        struct rank_probe *p = h->data;

        p->connection.is_open = false;
        if (!p->ended && p->connection.is_refused && p->next < p->n_addrs)
                connect_next(p);
        else if (!p->ended)
                end_round(p);
        unref_rank_probe(p);
}

/* @refused: the next address is asked, else the round is over. The handle may be closing
 * already. */
static void close_connection(struct rank_probe *p, bool refused)
{
        p->connection.is_refused = refused;
        if (p->connection.is_open && !uv_is_closing((uv_handle_t *)&p->connection.tcp))
                uv_close((uv_handle_t *)&p->connection.tcp, on_connection_closed);
}

/* --- HTTP ------------------------------------------------------------------------------------- */

/* The whole answer was read, or enough of it. */
static void judge_answer(struct rank_probe *p)
{
        if (p->connection.status >= 200 && p->connection.status <= 399)
                tell_ready(p);
        else
                close_connection(p, false);
}

static void on_round_late(uv_timer_t *timer)
{
        judge_answer(timer->data);
}

/* Behind the status the bytes are read into the same place again, and are lost. */
static void on_answer_alloc(uv_handle_t *h, size_t suggested UNUSED, uv_buf_t *ret)
{
        struct rank_probe *p = h->data;
        size_t n = p->connection.status ? 0 : p->connection.n_answer;

        *ret = uv_buf_init(p->connection.answer + n, (unsigned)(HTTP_STATUS_BYTES - n));
}

/* Reads on behind the status: to a server that still writes, a reset would be an error to report.
 */
static void on_answer(uv_stream_t *s, ssize_t n, const uv_buf_t *to UNUSED)
{
        struct rank_probe *p = s->data;

        if (n < 0) {
                judge_answer(p);
                return;
        }
        if (p->connection.status)
                return;
        p->connection.n_answer += (size_t)n;
        p->connection.status = http_status_read(p->connection.answer, p->connection.n_answer);
        if (p->connection.status < 0)
                close_connection(p, false);
        else if (p->connection.status > 0)
                uv_timer_start(&p->timer, on_round_late, REST_MS, 0);
}

static void on_request_sent(uv_write_t *w UNUSED, int status UNUSED)
{
        /* A failed write ends the reading, too. */
}

/* The request is made once, and kept for all rounds: libuv lends the bytes until they are
 * written. */
static void send_http_request(struct rank_probe *p)
{
        uv_stream_t *s = (uv_stream_t *)&p->connection.tcp;
        uv_buf_t out;

        if (!p->connection.request)
                p->connection.request = xasprintf("GET %s HTTP/1.1\r\n"
                                                  "Host: localhost:%u\r\n"
                                                  "User-Agent: hnlaunch\r\n"
                                                  "Accept: */*\r\n"
                                                  "Connection: close\r\n\r\n",
                                                  p->order.path, p->order.port);
        out = uv_buf_init(p->connection.request, (unsigned)strlen(p->connection.request));
        p->connection.n_answer = 0;
        p->connection.status = 0;
        if (uv_write(&p->connection.write, s, &out, 1, on_request_sent) < 0 ||
            uv_read_start(s, on_answer_alloc, on_answer) < 0)
                close_connection(p, false);
}

/* --- connections ------------------------------------------------------------------------------ */

/* The kernel may choose the free port that is asked for a connection, which then reaches itself. */
static bool is_rank_itself(const uv_tcp_t *tcp)
{
        struct sockaddr_storage ours = { 0 }, theirs = { 0 };
        int n = sizeof(ours), m = sizeof(theirs);

        return uv_tcp_getsockname(tcp, (struct sockaddr *)&ours, &n) == 0 &&
               uv_tcp_getpeername(tcp, (struct sockaddr *)&theirs, &m) == 0 && n == m &&
               memcmp(&ours, &theirs, (size_t)n) == 0;
}

static void on_rank_connected(uv_connect_t *c, int status)
{
        struct rank_probe *p = c->data;

        if (uv_is_closing((uv_handle_t *)&p->connection.tcp))
                return;
        if (status < 0) {
                close_connection(p, true);
        } else if (is_rank_itself(&p->connection.tcp)) {
                /* Without a reset the port would not be free for the server for a minute. */
                p->connection.is_refused = true;
                uv_tcp_close_reset(&p->connection.tcp, on_connection_closed);
        } else if (p->order.kind == READY_TCP) {
                tell_ready(p);
        } else {
                send_http_request(p);
        }
}

static void connect_next(struct rank_probe *p)
{
        const struct sockaddr *to = (const struct sockaddr *)&p->addrs[p->next++];

        uv_tcp_init(p->loop, &p->connection.tcp);
        p->connection.tcp.data = p->connection.connect.data = p;
        p->connection.is_open = true;
        p->uses++;
        /* An address of a family that the node has not fails at once. */
        if (uv_tcp_connect(&p->connection.connect, &p->connection.tcp, to, on_rank_connected) < 0)
                close_connection(p, true);
}

/* --- files ------------------------------------------------------------------------------------ */

static void on_looked(uv_fs_t *look)
{
        struct rank_probe *p = look->data;
        bool there = look->result == 0;

        uv_fs_req_cleanup(look);
        if (!p->ended && there)
                tell_ready(p);
        else if (!p->ended)
                end_round(p);
        unref_rank_probe(p);
}

/* uv_fs_access() without a callback is done at once; with a callback a thread does it. */
static void look_for_file(struct rank_probe *p)
{
        bool there;

        if (p->order.alone) {
                there = uv_fs_access(NULL, &p->look, p->order.path, 0, NULL) == 0;
                uv_fs_req_cleanup(&p->look);
                if (there)
                        tell_ready(p);
                else
                        end_round(p);
                return;
        }
        p->uses++;
        p->look.data = p;
        if (uv_fs_access(p->loop, &p->look, p->order.path, 0, on_looked) == 0)
                return;
        p->uses--;
        end_round(p);
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* The limit of the round is set first: connect_next() may find nothing that answers or refuses. */
static void begin_round(uv_timer_t *timer)
{
        struct rank_probe *p = timer->data;

        p->next = 0;
        if (p->order.kind == READY_FILE) {
                look_for_file(p);
                return;
        }
        uv_timer_start(timer, on_round_late, ROUND_MS, 0);
        connect_next(p);
}

/* The first round begins in the next turn of the loop, so ready() is not called from inside. */
struct rank_probe *rank_probe_start(uv_loop_t *loop, const struct rank_probe_order *order,
                                    void (*ready)(void *ctx, uint32_t rank), void *ctx,
                                    uint32_t rank)
{
        struct rank_probe *p = xcalloc(1, sizeof(*p));

        *p = (struct rank_probe){
                .order = *order, .ready = ready, .ctx = ctx, .rank = rank, .loop = loop, .uses = 1
        };
        p->order.path = xstrdup(order->path);
        p->since = uv_now(loop);
        if (order->kind != READY_FILE)
                collect_rank_addresses(p);
        uv_timer_init(loop, &p->timer);
        p->timer.data = p;
        uv_timer_start(&p->timer, begin_round, 0, 0);
        return p;
}

static void on_probe_timer_closed(uv_handle_t *h)
{
        unref_rank_probe(h->data);
}

void rank_probe_end(struct rank_probe *p)
{
        if (!p || p->ended)
                return;
        /* Callbacks still come for what is under way, and see this. */
        p->ended = true;
        close_connection(p, false);
        uv_close((uv_handle_t *)&p->timer, on_probe_timer_closed);
}
