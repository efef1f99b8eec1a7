/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One relay serves everything: Unix clients, TCP clients and, through tunnel filters, child nodes.
 * The relay's requests leave as MSG_STORE frames; agent.c hands the head's answers to the relay.
 * store_access_turn() runs once in every turn of the loop, so requests of many clients in one turn
 * become a single request; the timer @due only ends a turn when the relay holds requests back.
 *
 * The held port goes three ways. Without a TCP endpoint on this node the port is released for the
 * rank listening on MASTER_PORT, and held again after the attempt; with an endpoint the held socket
 * becomes the listener.
 */
#include "agent/endpoint/store_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/uplink.h"
#include "agent/endpoint/endpoint_tcp.h"
#include "agent/endpoint/endpoint_unix.h"
#include "agent/endpoint/peer_owners.h"
#include "agent/endpoint/port.h"
#include "agent/endpoint/probe.h"
#include "agent/record/node_trace.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/relay/relay.h"

struct store_access {
        uv_loop_t *loop;
        uint32_t world, first_rank; /* number of the world, and of its rank 0 in the job */
        struct uplink *up;
        struct relay *relay;
        struct endpoint_unix *endpoint; /* NULL until the first attempt */
        struct endpoint_tcp *tcp;       /* NULL = not open; ranks of other nodes may outlive ours */
        bool tcp_used;                  /* by an attempt that is over here */
        uint8_t tcp_mode;               /* enum endpoint_mode */
        struct held_port port;          /* for MASTER_PORT */
        struct reserved_ports ports;    /* for the ranks, by the order PORTS */
        struct sockaddr_storage
                master; /* the TCP endpoint of the ranks, on any node; family 0 = none */
        struct peer_owners *owners; /* of connections to the TCP endpoint */
        struct probe *probe;        /* NULL = none under way */
        uv_timer_t due;             /* the relay has something to send then */
        struct node_trace *trace;   /* of the ranks' requests */
};

enum {
        FDS_OF_AGENT = 64, /* open files that are left to ranks and the agent itself */
        /* Pipes, PMI and sockets of a rank, with a reserve. */
        FDS_OF_RANK = 8,
};

/* --- life cycle ------------------------------------------------------------------------------- */

/* Wraps a message about the store in the number of its world; world 0 needs no wrapper. */
static size_t begin_message(struct store_access *s)
{
        return world_begin(&s->up->out, s->world);
}

static void send_store(void *ctx, const void *body, size_t len)
{
        struct store_access *s = ctx;

        size_t mark = begin_message(s);

        store_encode(&s->up->out, body, len);
        world_end(&s->up->out, mark, 0);
}

static void send_owners_request(void *ctx, const struct owners_request *m)
{
        struct store_access *s = ctx;

        size_t mark = begin_message(s);

        owners_request_encode(&s->up->out, m);
        world_end(&s->up->out, mark, 0);
}

/* The time of the turn: exact enough for the age of a wait. */
static uint64_t get_loop_time_ns(void *ctx)
{
        const struct store_access *s = ctx;

        return uv_now(s->loop) * 1000000;
}

/* --- the trace of the ranks' requests --------------------------------------------------------- */

static void trace_request(void *ctx, const struct relay_client *c, const struct relay_seen *what)
{
        struct store_access *s = ctx;
        /* The trace counts ranks of the job, the relay those of the world. */
        uint32_t rank = s->first_rank + (uint32_t)relay_client_rank(c);

        if (what->op == STORE_PROGRESS)
                node_trace_step(s->trace, rank, what->number);
        else
                node_trace_op(s->trace, rank, what->op, what->status,
                              (get_loop_time_ns(s) - what->since_ns) / 1000, what->key);
}

static void trace_open_request(void *ctx, const struct relay_client *c, uint32_t rank)
{
        struct store_access *s = ctx;
        struct relay_pending p;

        if (relay_client_pending(c, &p))
                node_trace_op(s->trace, rank, p.op, TRACE_OPEN,
                              (get_loop_time_ns(s) - p.since_ns) / 1000, p.key);
}

void store_access_trace_open(struct store_access *s)
{
        store_access_each_local(s, trace_open_request, s);
}

/* --- opening ---------------------------------------------------------------------------------- */

struct store_access *store_access_create(uv_loop_t *loop, struct uplink *up,
                                         struct node_trace *trace, uint32_t world)
{
        static const struct relay_ops ops = { .up = send_store,
                                              .now = get_loop_time_ns,
                                              .seen = trace_request };

        struct store_access *s = xcalloc(1, sizeof(*s));

        *s = (struct store_access){
                .loop = loop, .world = world, .up = up, .trace = trace, .port = PORT_INIT
        };
        s->relay = relay_create(ops, s);
        s->owners = peer_owners_create(send_owners_request, s);
        uv_timer_init(loop, &s->due);
        return s;
}

int store_access_listen(struct store_access *s, const char *path, struct error *err)
{
        if (!s->endpoint)
                s->endpoint = endpoint_unix_create(s->loop, path, s->relay, err);
        return s->endpoint ? 0 : -err->code;
}

void store_access_start(struct store_access *s, const struct launch_order *l)
{
        struct sockaddr_in *four = (struct sockaddr_in *)&s->master;
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&s->master;

        s->first_rank = l->world.first;
        if (s->tcp) {
                endpoint_tcp_reserve(s->tcp, FDS_OF_AGENT + FDS_OF_RANK * (size_t)l->n_ranks);
                endpoint_tcp_expect(s->tcp,
                                    s->tcp_mode == ENDPOINT_LOOPBACK ? l->n_ranks : l->world_size);
        }
        memset(&s->master, 0, sizeof(s->master));
        ports_release(&s->ports);
        /* The program listens on MASTER_PORT itself: rank 0 finds the port free. */
        if (!l->agent_store) {
                port_release(&s->port);
        } else if (inet_pton(AF_INET, l->master_addr, &four->sin_addr) == 1) {
                four->sin_family = AF_INET;
                four->sin_port = htons((uint16_t)l->master_port);
        } else if (inet_pton(AF_INET6, l->master_addr, &six->sin6_addr) == 1) {
                six->sin6_family = AF_INET6;
                six->sin6_port = htons((uint16_t)l->master_port);
        }
}

void store_access_again(struct store_access *s)
{
        if (s->endpoint)
                endpoint_unix_hang_up(s->endpoint);
        /* An endpoint for all nodes may have clients of other nodes. */
        if (s->tcp && s->tcp_mode == ENDPOINT_LOOPBACK)
                endpoint_tcp_hang_up(s->tcp);
}

void store_access_end(struct store_access *s)
{
        if (s->endpoint)
                endpoint_unix_hang_up(s->endpoint);
        /* The endpoint stays for ranks of other nodes that have not ended. */
        s->tcp_used = s->tcp;
        if (!s->tcp)
                port_hold(&s->port); /* the same number if free, for the next attempt */
}

/* --- the TCP endpoint ------------------------------------------------------------------------- */

/* Tells the head the port, or with port 0 the reason in @err. */
static void send_endpoint_opened(struct store_access *s, const struct error *err)
{
        struct endpoint_opened m = { .port = s->tcp ? endpoint_tcp_port(s->tcp) : 0 };
        size_t mark = begin_message(s);

        if (!m.port)
                memcpy(m.text, err->text, strnlen(err->text, sizeof(m.text) - 1));
        endpoint_opened_encode(&s->up->out, &m);
        world_end(&s->up->out, mark, 0);
}

/* The endpoint closes by callbacks; its port is free only after these. */
static void close_tcp_endpoint(struct store_access *s)
{
        endpoint_tcp_destroy(s->tcp);
        s->tcp = NULL;
}

/* Turns the held port into the endpoint. An unused endpoint stays open, because the head has told
 * other nodes the port number. */
static void open_tcp_endpoint(struct store_access *s, const struct endpoint_order *order)
{
        struct error err = { 0 };
        int fd;

        if (s->tcp && !s->tcp_used && s->tcp_mode == order->mode) {
                endpoint_tcp_renew(s->tcp, order);
        } else {
                if (s->tcp_used) {
                        port_drop(&s->port);
                        port_hold(&s->port); /* another one: the endpoint's is not free yet */
                }
                close_tcp_endpoint(s);
                s->tcp_used = false;
                port_hold(&s->port);
                fd = s->port.fd;
                s->port.fd = -1; /* endpoint_tcp_create() takes the descriptor */
                s->tcp = endpoint_tcp_create(s->loop, fd, order, s->relay, s->owners, &err);
                s->tcp_mode = order->mode;
        }
        send_endpoint_opened(s, &err);
}

void store_access_on_endpoint(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct error err = { 0 };
        struct endpoint_order m;

        if (endpoint_order_decode(&m, f, &err) < 0) {
                close_tcp_endpoint(s);
                send_endpoint_opened(s, &err);
                return;
        }
        open_tcp_endpoint(s, &m);
        endpoint_order_finish(&m);
}

/* --- messages of the head --------------------------------------------------------------------- */

static void send_ports_held(struct store_access *s, const struct ports_held *m)
{
        size_t mark = begin_message(s);

        ports_held_encode(&s->up->out, m);
        world_end(&s->up->out, mark, 0);
}

void store_access_on_ports(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct ports_held m = { 0 };
        uint32_t n;
        int r = number_decode(&n, f, NULL);

        if (r == 0)
                r = n && n <= PORT_NUMBERS_MAX ? ports_hold(&s->ports, n) : -EINVAL;
        if (r < 0) {
                snprintf(m.text, sizeof(m.text), "%s", strerror(-r));
                send_ports_held(s, &m);
                return;
        }
        m.n = n;
        m.numbers = xcalloc(n, sizeof(*m.numbers));
        for (uint32_t i = 0; i < n; i++)
                m.numbers[i] = s->ports.v[i].number;
        send_ports_held(s, &m);
        ports_held_finish(&m);
}

/* Sends the result to the head. The probe has ended, and another may begin. */
static void on_probed(void *ctx, const struct probed *result)
{
        struct store_access *s = ctx;

        size_t mark = begin_message(s);

        s->probe = NULL;
        probed_encode(&s->up->out, result);
        world_end(&s->up->out, mark, 0);
}

void store_access_on_probe(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct probe_order m;
        struct error err;

        if (probe_order_decode(&m, f, &err) < 0) {
                log_line(LOG_WARN, "%s", err.text);
                return;
        }
        if (s->probe) { /* every order has an answer; the head waits only for the last */
                probe_cancel(s->probe);
                on_probed(s, &(struct probed){ 0 });
        }
        s->probe = probe_start(s->loop, &m, on_probed, s);
        probe_order_finish(&m);
}

void store_access_on_owners_request(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct owners_request m;
        struct owners answer;
        struct error err;
        size_t mark;

        if (owners_request_decode(&m, f, &err) < 0) {
                log_line(LOG_WARN, "%s", err.text);
                return;
        }
        owners_look_up(&m, &answer);
        mark = begin_message(s);
        owners_encode(&s->up->out, &answer);
        world_end(&s->up->out, mark, 0);
        owners_finish(&answer);
        owners_request_finish(&m);
}

void store_access_on_store(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct error err;

        if (relay_deliver(s->relay, f->body, f->len, &err) < 0)
                log_line(LOG_WARN, "%s", err.text);
}

void store_access_on_owners(void *access, const struct frame *f)
{
        struct store_access *s = access;
        struct owners m;
        struct error err;

        if (owners_decode(&m, f, &err) < 0) {
                log_line(LOG_WARN, "%s", err.text);
                return;
        }
        peer_owners_take(s->owners, &m);
        owners_finish(&m);
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Ends the turn of the loop, and so leads to store_access_turn(). */
static void on_due(uv_timer_t *timer UNUSED)
{
}

/* Repeated calls change nothing: the pause is a state of each endpoint. */
static void pause_clients(struct store_access *s, bool paused)
{
        if (s->endpoint)
                endpoint_unix_pause(s->endpoint, paused);
        if (s->tcp)
                endpoint_tcp_pause(s->tcp, paused);
}

void store_access_turn(struct store_access *s)
{
        int wait;

        relay_turn(s->relay);
        wait = relay_wait_ms(s->relay);
        if (wait < 0)
                uv_timer_stop(&s->due);
        else if (!uv_is_active((uv_handle_t *)&s->due))
                uv_timer_start(&s->due, on_due, (uint64_t)wait, 0);
        peer_owners_turn(s->owners);
        if (s->tcp)
                endpoint_tcp_turn(s->tcp);
        /* Last: all messages of this turn are in the queue by now. */
        if (uplink_full(s->up))
                pause_clients(s, true);
}

void store_access_resume(struct store_access *s)
{
        pause_clients(s, false);
}

void store_access_close(struct store_access *s)
{
        probe_cancel(s->probe);
        s->probe = NULL;
        close_tcp_endpoint(s);
        endpoint_unix_destroy(s->endpoint);
        s->endpoint = NULL;
        port_drop(&s->port);
        ports_drop(&s->ports);
        uv_close((uv_handle_t *)&s->due, NULL);
}

void store_access_destroy(struct store_access *s)
{
        if (!s)
                return;
        relay_destroy(s->relay);
        peer_owners_destroy(s->owners);
        free(s);
}

/* --- what others ask -------------------------------------------------------------------------- */

uint16_t store_access_hold_port(struct store_access *s)
{
        port_hold(&s->port);
        return (uint16_t)s->port.number;
}

struct relay *store_access_relay(struct store_access *s)
{
        return s->relay;
}

const struct sockaddr *store_access_master(const struct store_access *s)
{
        return s->master.ss_family ? (const struct sockaddr *)&s->master : NULL;
}

const struct endpoint_tcp *store_access_tcp(const struct store_access *s)
{
        return s->tcp;
}

/* For the endpoint's callback, which knows ranks of the world only. */
struct client_walk {
        void (*fn)(void *ctx, const struct relay_client *c, uint32_t rank);
        void *ctx;
        uint32_t first_rank;
};

static void visit_client(void *ctx, const struct relay_client *c)
{
        const struct client_walk *walk = ctx;
        int rank = relay_client_rank(c);

        if (rank >= 0)
                walk->fn(walk->ctx, c, walk->first_rank + (uint32_t)rank);
}

void store_access_each_local(const struct store_access *s,
                             void (*fn)(void *ctx, const struct relay_client *c, uint32_t rank),
                             void *ctx)
{
        struct client_walk walk = { fn, ctx, s->first_rank };

        if (s->endpoint)
                endpoint_unix_each(s->endpoint, visit_client, &walk);
}
