/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream has one place, @position: how many of its PACKs this node has. The ring keeps the last
 * PUSH_RING ones for the node behind, which tells its own position when it connects: @next is what
 * it gets next. While it is HOLD behind, nothing more is taken: the node before is not read, and
 * the head gets no TAKEN. Without a connection to a node behind that the head has ordered the same
 * holds, until the head orders another one or none, so that a stream goes on where it has stopped.
 * A node behind that yields is never waited for.
 *
 * The timer compares what came in while the node behind kept up with what it takes when it does
 * not, to tell a slow node from a slow network before it.
 */
#include "agent/tree/chain.h"

#include <errno.h>
#include <sodium/core.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/uplink.h"
#include "agent/files/push_receiver.h"
#include "agent/tree/chain_link.h"
#include "base/clock.h"
#include "base/memory.h"
#include "wire/msg.h"

enum {
        HOLD = 32,             /* PACKs */
        UNSENT_MAX = 64 << 10, /* bytes given to libuv */
        CONNECT_MS = 2500,
        CHECK_MS = 250,
        HELD_CHECKS = 6, /* of a slow node */
};

/* The connection to the node behind. */
struct chain_out {
        bool ordered, yields;
        uint32_t number;         /* of the order */
        uint32_t next;           /* position of the next PACK for it */
        struct chain_link *link; /* NULL = none yet */
        struct chain_link *tried[PUSH_CHAIN_ADDRS];
        int64_t since_ns;
};

/* PACKs that came while nothing was held, and that were passed on while it was, by checks. */
struct chain_pace {
        uint32_t position, next; /* of the last check */
        uint32_t came, came_checks;
        uint32_t passed, held_checks;
};

struct chain {
        uv_loop_t *loop;
        struct uplink *up;
        struct push_receiver *push;
        uv_timer_t timer;
        uint32_t stream, packs; /* 0 = none yet */
        uint32_t position;
        uint32_t kept_from;
        struct buf *ring;        /* PUSH_RING frames, by position; NULL = PACKs are not kept */
        struct chain_port *port; /* NULL = closed */
        struct chain_link *in;   /* from the node before */
        struct chain_out out;
        struct chain_pace pace;
        uint32_t owed; /* bytes of PACKs of the head without a TAKEN */
};

/* --- the end of things ------------------------------------------------------------------------ */

static void send_chain_report(struct chain *c, enum chained_what what, uint32_t number,
                              uint32_t port, int error)
{
        chain_report_encode(&c->up->out, &(struct chain_report){ .number = number,
                                                                 .stream = c->stream,
                                                                 .what = (uint8_t)what,
                                                                 .position = c->position,
                                                                 .port = port,
                                                                 .error = (uint32_t)error });
}

static void close_chain_in(struct chain *c)
{
        chain_port_close(STEAL(&c->port));
        chain_link_close(STEAL(&c->in));
}

/* Keeps the order. */
static void close_chain_out(struct chain *c)
{
        chain_link_close(STEAL(&c->out.link));
        for (int i = 0; i < PUSH_CHAIN_ADDRS; i++)
                chain_link_close(STEAL(&c->out.tried[i]));
}

static void report_chain_break(struct chain *c, int error)
{
        close_chain_out(c);
        send_chain_report(c, CHAINED_BROKEN, c->out.number, 0, error ? error : ECONNRESET);
}

static void begin_chain_stream(struct chain *c, uint32_t stream)
{
        close_chain_in(c);
        close_chain_out(c);
        uv_timer_stop(&c->timer);
        for (int i = 0; c->ring && i < PUSH_RING; i++)
                buf_finish(&c->ring[i]);
        free(STEAL(&c->ring));
        c->stream = stream;
        c->packs = c->position = c->kept_from = 0;
        c->out = (struct chain_out){ 0 };
        c->pace = (struct chain_pace){ 0 };
}

static bool is_chain_connecting(const struct chain *c)
{
        for (int i = 0; i < PUSH_CHAIN_ADDRS; i++)
                if (c->out.tried[i])
                        return true;
        return false;
}

/* --- passing on ------------------------------------------------------------------------------- */

/* True while the node behind is too far behind to take more. */
static bool is_chain_held(const struct chain *c)
{
        return c->out.ordered && !c->out.yields && (int32_t)(c->position - c->out.next) >= HOLD;
}

/* Sends what the connection takes. */
static void pass_packs_on(struct chain *c)
{
        struct chain_out *o = &c->out;

        if (o->link && o->next < c->kept_from) {
                report_chain_break(c, ERANGE);
                return;
        }
        while (o->link && o->next < c->position && chain_link_unsent(o->link) < UNSENT_MAX) {
                const struct buf *b = &c->ring[o->next++ % PUSH_RING];

                chain_link_send(o->link, buf_data(b), buf_len(b));
        }
}

/* Takes more, and lets the head send more, when nothing holds the stream. */
static void release_chain(struct chain *c)
{
        if (is_chain_held(c))
                return;
        if (c->owed)
                number_encode(&c->up->out, MSG_TAKEN, c->owed);
        c->owed = 0;
        if (c->in)
                chain_link_resume(c->in);
}

/* Keeps the whole frame. */
static void keep_pack(struct chain *c, const struct frame *f)
{
        struct buf *b = &c->ring[c->position % PUSH_RING];
        size_t mark;

        buf_clear(b);
        mark = frame_begin(b, MSG_PACK);
        buf_append(b, f->body, f->len);
        frame_end(b, mark);
        if (c->position - c->kept_from == PUSH_RING)
                c->kept_from++;
}

/* Takes the next PACK of the stream; one that was there before is ignored. 0, or -EPROTO. */
static int take_pack(struct chain *c, const struct frame *f)
{
        struct push_pack m;

        if (push_pack_decode(&m, f, NULL) < 0)
                return -EPROTO;
        if (m.stream > c->stream)
                begin_chain_stream(c, m.stream);
        if (m.stream == c->stream && m.position == c->position) {
                if (c->ring)
                        keep_pack(c, f);
                c->position++;
                pass_packs_on(c); /* first: the nodes behind wait, the disk does not */
                push_receiver_take(c->push, &m);
        }
        push_pack_finish(&m);
        return 0;
}

void chain_on_pack(void *chain, const struct frame *f)
{
        struct chain *c = chain;

        take_pack(c, f);
        c->owed += (uint32_t)(FRAME_HEADER + f->len);
        release_chain(c);
}

/* --- events of connections -------------------------------------------------------------------- */

static bool on_chain_frame(void *ctx, const struct frame *f)
{
        struct chain *c = ctx;

        /* Other messages of a node with the key are of another version. */
        if (f->type == MSG_PACK)
                take_pack(c, f);
        return !is_chain_held(c);
}

static void on_in_proved(void *ctx, struct chain_link *l, uint32_t number)
{
        struct chain *c = ctx;

        chain_port_close(STEAL(&c->port));
        if (number != c->stream)
                chain_link_close(l);
        else
                c->in = l;
}

/* The node before reports its loss to the head. */
static void on_in_ended(void *ctx, struct chain_link *l UNUSED, int error UNUSED)
{
        struct chain *c = ctx;

        c->in = NULL;
}

static void on_out_proved(void *ctx, struct chain_link *l, uint32_t number)
{
        struct chain *c = ctx;

        for (int i = 0; i < PUSH_CHAIN_ADDRS; i++)
                if (c->out.tried[i] == l)
                        c->out.tried[i] = NULL;
        close_chain_out(c); /* the other addresses */
        c->out.link = l;
        c->out.next = number;
        send_chain_report(c, CHAINED_CONNECTED, c->out.number, 0, 0);
        pass_packs_on(c);
        release_chain(c);
}

static void on_out_written(void *ctx)
{
        struct chain *c = ctx;

        pass_packs_on(c);
        release_chain(c);
}

static void on_out_ended(void *ctx, struct chain_link *l, int error)
{
        struct chain *c = ctx;

        for (int i = 0; i < PUSH_CHAIN_ADDRS; i++)
                if (c->out.tried[i] == l)
                        c->out.tried[i] = NULL;
        if (c->out.link == l)
                c->out.link = NULL;
        if (!c->out.link && !is_chain_connecting(c))
                report_chain_break(c, error);
}

static bool ignore_frame(void *ctx UNUSED, const struct frame *f UNUSED)
{
        return true;
}

static void ignore_written(void *ctx UNUSED)
{
}

static const struct chain_link_ops in_ops = { .proved = on_in_proved,
                                              .frame = on_chain_frame,
                                              .written = ignore_written,
                                              .ended = on_in_ended };
static const struct chain_link_ops out_ops = { .proved = on_out_proved,
                                               .frame = ignore_frame,
                                               .written = on_out_written,
                                               .ended = on_out_ended };

/* --- time ------------------------------------------------------------------------------------- */

/* Reports the node behind when it takes less than half of what comes. */
static void measure_chain_pace(struct chain *c)
{
        struct chain_pace *p = &c->pace;
        uint32_t came = c->position - p->position, passed = c->out.next - p->next;

        p->position = c->position;
        p->next = c->out.next;
        if (!is_chain_held(c) || !c->out.link) {
                p->came += came;
                p->came_checks += came > 0;
                p->passed = p->held_checks = 0;
                return;
        }
        p->passed += passed;
        if (++p->held_checks < HELD_CHECKS)
                return;
        if (p->came_checks &&
            2 * (uint64_t)p->passed * p->came_checks < (uint64_t)p->came * p->held_checks)
                send_chain_report(c, CHAINED_SLOW, c->out.number, 0, 0);
        p->passed = p->held_checks = 0;
}

static void on_chain_check(uv_timer_t *t)
{
        struct chain *c = t->data;

        if (c->port)
                chain_port_check(c->port);
        if (is_chain_connecting(c) && clock_ns() - c->out.since_ns > CONNECT_MS * INT64_C(1000000))
                report_chain_break(c, ETIMEDOUT);
        measure_chain_pace(c);
}

/* --- orders ----------------------------------------------------------------------------------- */

static void listen_for_chain(struct chain *c, const struct chain_order *m)
{
        struct chain_peer peer = {
                .loop = c->loop, .ops = &in_ops, .ctx = c, .number = c->position
        };
        int error;

        close_chain_in(c);
        memcpy(peer.key, m->key, sizeof(peer.key));
        if (m->what == CHAIN_LISTEN)
                c->port = chain_port_open(&peer, &error);
        send_chain_report(c, CHAINED_LISTENS, m->number, c->port ? chain_port_number(c->port) : 0,
                          0);
}

static void connect_chain(struct chain *c, const struct chain_order *m)
{
        struct chain_peer peer = {
                .loop = c->loop, .ops = &out_ops, .ctx = c, .number = m->stream
        };
        uint32_t n = 0;

        close_chain_out(c);
        if (!c->out.ordered)
                c->out.next = c->position;
        c->out.ordered = true;
        c->out.yields = m->yields;
        c->out.number = m->number;
        c->out.since_ns = clock_ns();
        memcpy(peer.key, m->key, sizeof(peer.key));
        for (size_t i = 0; i < m->addrs.n; i++) {
                c->out.tried[n] = chain_link_connect(&peer, m->addrs.v[i], m->port);
                n += c->out.tried[n] != NULL;
        }
        if (!n)
                report_chain_break(c, EHOSTUNREACH);
}

void chain_on_chain(void *chain, const struct frame *f)
{
        struct chain *c = chain;
        struct chain_order m;

        if (chain_order_decode(&m, f, NULL) < 0)
                return;
        if (m.stream > c->stream)
                begin_chain_stream(c, m.stream);
        if (m.stream < c->stream || m.what == CHAIN_END) {
                if (m.stream == c->stream)
                        begin_chain_stream(c, m.stream + 1);
                chain_order_finish(&m);
                return;
        }
        if (!c->ring) {
                int r UNUSED = sodium_init(); /* or the ciphers are those of any processor: slow */

                c->ring = xcalloc(PUSH_RING, sizeof(*c->ring));
                c->kept_from = c->position;
                c->packs = m.packs;
                uv_timer_start(&c->timer, on_chain_check, CHECK_MS, CHECK_MS);
        }
        if (m.what == CHAIN_LISTEN || m.what == CHAIN_LEAVE) {
                listen_for_chain(c, &m);
        } else if (m.what == CHAIN_CONNECT) {
                connect_chain(c, &m);
        } else if (m.what == CHAIN_YIELD) {
                c->out.yields = true;
        } else {
                close_chain_out(c);
                c->out.ordered = false;
        }
        chain_order_finish(&m);
        release_chain(c);
}

struct chain *chain_create(uv_loop_t *loop, struct uplink *up, struct push_receiver *push)
{
        struct chain *c = xcalloc(1, sizeof(*c));

        c->loop = loop;
        c->up = up;
        c->push = push;
        uv_timer_init(loop, &c->timer);
        c->timer.data = c;
        return c;
}

void chain_close(struct chain *c)
{
        begin_chain_stream(c, UINT32_MAX);
        uv_close((uv_handle_t *)&c->timer, NULL);
}

void chain_destroy(struct chain *c)
{
        free(c);
}
