/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each node has a seat: the connection of the node, and the job's link to the node. All waiting
 * links open together, when each has a connection; until then nodes may come, go and come again,
 * and no agent runs. A node keeps the seat after the end of the agent, and the next link starts
 * another agent there. A second connection of a node waits beside the first while the first counts.
 *
 * The destruction tells each node the end of the job, and waits until the nodes have closed their
 * connections, DIAL_LINGER_MS at most. The last closed handle frees the transport.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/memory.h"
#include "head/dial_in/dial_in.h"
#include "head/dial_in/dial_listener.h"
#include "head/dial_in/dial_munge.h"
#include "head/dial_in/dial_peer.h"
#include "head/output/say.h"
#include "wire/msg.h"

enum {
        TICK_MS = 250,
        SAY_FIRST_MS = 10000, /* waiting nodes are told after this time, and then each minute */
        SAY_EVERY_MS = 60000,
        EXIT_MS = 5000, /* for the end of an agent given up by the job */
};

struct dial_transport;

struct dial_link {
        struct link link;
        struct dial_transport *t;
        const struct link_callbacks *cb;
        void *ctx;
        size_t rank;
        bool open, over;  /* opened() was called; the last callback was */
        int64_t since_ns; /* of open_dial_link() */
};

struct dial_seat {
        struct dial_peer *peer;    /* NULL = the node is not here */
        struct dial_peer *waiting; /* dialed in while @peer still counts */
        struct dial_link *link;    /* NULL = none is open */
        bool running;              /* an agent was started there and has not ended */
        bool told;                 /* of another node's wait for the seat */
};

struct dial_transport {
        struct transport transport;
        uv_loop_t *loop;
        struct dial_in *d;
        struct dial_listener listener;
        bool listening;
        struct dial_munge *munge; /* NULL: there is a secret, or none */
        uv_timer_t ticker, settle;
        struct dial_seat *seats; /* by node rank; not used for node 0 */
        bool destroying;
        /* Of the wait for nodes; of the last message, @begun_ns = none. */
        int64_t begun_ns, said_ns;
        int handles; /* listener, timers */
};

/* Whether a seat with a waiting link lacks a connection free for an agent. After the job has given
 * up an agent, the connection is free from the end of the agent on. */
static bool is_seat_empty(const struct dial_seat *s)
{
        return !s->peer || s->running;
}

/* Counts the links that wait; with @missing only links without a free connection. */
static size_t count_pending(const struct dial_transport *t, bool missing)
{
        size_t n = 0;

        for (int i = 1; i < t->d->place.nodes; i++) {
                const struct dial_seat *s = &t->seats[i];

                n += s->link && !s->link->open && !s->link->over && (!missing || is_seat_empty(s));
        }
        return n;
}

/* --- messages to users ------------------------------------------------------------------------ */

/* Writes "node 2", or "nodes 1, 3-5". */
static void name_missing(const struct dial_transport *t, char *to, size_t size)
{
        size_t n = count_pending(t, true), len;

        len = (size_t)snprintf(to, size, "node%s", n == 1 ? "" : "s");
        /* 32 bytes for a range or the dots. */
        for (int i = 1; i < t->d->place.nodes && len + 32 < size; i++) {
                int last = i;

                if (!t->seats[i].link || t->seats[i].link->open || !is_seat_empty(&t->seats[i]))
                        continue;
                while (last + 1 < t->d->place.nodes && t->seats[last + 1].link &&
                       !t->seats[last + 1].link->open && is_seat_empty(&t->seats[last + 1]))
                        last++;
                /* No comma behind "node" and "nodes". */
                len += (size_t)snprintf(to + len, size - len, last > i ? "%s %d-%d" : "%s %d",
                                        to[len - 1] == 'e' || to[len - 1] == 's' ? "" : ",", i,
                                        last);
                i = last;
        }
        if (len + 32 >= size)
                snprintf(to + len, size - len, " ...");
}

static void say_missing(struct dial_transport *t)
{
        int64_t now = clock_ns(), ms = (now - t->said_ns) / 1000000;
        char names[300];

        if (t->d->quiet || !count_pending(t, true) ||
            ms < (t->said_ns == t->begun_ns ? SAY_FIRST_MS : SAY_EVERY_MS))
                return;
        t->said_ns = now;
        name_missing(t, names, sizeof(names));
        say("hnlaunch: %zu of %d nodes are here, waiting for %s\n",
            (size_t)t->d->place.nodes - count_pending(t, true), t->d->place.nodes, names);
}

/* --- links ------------------------------------------------------------------------------------ */

/* Fails the links of nodes that did not dial in within the time; node 0 is this machine. */
static void fail_late_links(struct dial_transport *t)
{
        struct link_failure why = { .phase = LINK_CONNECTING, .cause = LINK_ABSENT };
        int64_t now = clock_ns();
        char limit[32];

        if (t->d->timeout_ms < 0)
                return;
        format_duration(limit, sizeof(limit), t->d->timeout_ms * 1000);
        snprintf(why.fact, sizeof(why.fact), "did not dial in within %s", limit);
        for (int i = 1; i < t->d->place.nodes; i++) {
                struct dial_link *l = t->seats[i].link;

                if (!l || l->open || l->over || !is_seat_empty(&t->seats[i]) ||
                    now - l->since_ns < t->d->timeout_ms * 1000000)
                        continue;
                l->over = true;
                l->cb->failed(l->ctx, &why);
        }
}

static bool is_host_name(const struct hosts *hosts, const char *name, size_t but)
{
        for (size_t i = 0; i < hosts->n; i++)
                if (i != but && !strcmp(hosts->v[i].name, name))
                        return true;
        return false;
}

/* Names the host as the running node says; with a number, from the node rank on, where another host
 * has the name. */
static void rename_host(struct dial_transport *t, const struct dial_peer *p)
{
        struct hosts *hosts = t->d->hosts;
        char name[DIAL_NAME_MAX + 16];

        snprintf(name, sizeof(name), "%s", p->join.name);
        for (uint32_t n = p->join.rank; is_host_name(hosts, name, p->join.rank); n++)
                snprintf(name, sizeof(name), "%s-%u", p->join.name, n);
        /* dial_in_add_hosts() has made room for the longest name. */
        memcpy(hosts->v[p->join.rank].name, name, sizeof(name));
}

/* Opens all waiting links, when each has a connection. Hosts take the names of the nodes only now:
 * until then the end of an earlier node may still be told, under the earlier name. */
static void settle_links(struct dial_transport *t)
{
        size_t pending = count_pending(t, false);

        if (t->destroying || !pending || count_pending(t, true))
                return;
        /* Only after a message about missing nodes. */
        if (t->said_ns != t->begun_ns && !t->d->quiet)
                say("hnlaunch: all %d nodes are here\n", t->d->place.nodes);
        t->said_ns = t->begun_ns;
        for (int i = 1; i < t->d->place.nodes; i++) {
                struct dial_seat *s = &t->seats[i];

                if (!s->link || s->link->open || s->link->over)
                        continue;
                s->link->open = s->running = true;
                rename_host(t, s->peer);
                dial_peer_send(s->peer, DIAL_WELCOME, NULL, 0);
                s->link->cb->opened(s->link->ctx, -1);
        }
}

static void on_settle(uv_timer_t *timer)
{
        settle_links(timer->data);
}

static void end_dial_link(struct dial_link *l, const char *text)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };

        if (!l || !l->open || l->over)
                return;
        l->over = true;
        snprintf(why.fact, sizeof(why.fact), "%s", text);
        l->cb->ended(l->ctx, &why);
}

/* Ends the node's connection with a given-up agent; the waiting connection takes the place. */
static void give_seat_up(struct dial_seat *s)
{
        static const struct dial_end lost = { .code = EX_FAILED,
                                              .text = "this node was lost to the job" };

        if (s->peer)
                dial_peer_end(s->peer, DIAL_END, &lost);
        s->peer = s->waiting;
        s->waiting = NULL;
        s->running = false;
}

/* Gives up connections with agents still there after the time. */
static void give_up_late_seats(struct dial_transport *t)
{
        int64_t limit = clock_ns() - (int64_t)EXIT_MS * 1000000;

        for (int i = 1; i < t->d->place.nodes; i++) {
                struct dial_seat *s = &t->seats[i];

                if (s->link && !s->link->open && s->peer && s->running &&
                    (s->waiting || s->link->since_ns < limit))
                        give_seat_up(s);
        }
}

/* Opens a link to a seat, which a node may have taken already. A waiting connection gets the seat
 * now: the agent of the first connection belongs to an earlier link. */
static struct link *open_dial_link(struct transport *transport, const struct link_target *to,
                                   const struct link_callbacks *cb, void *ctx,
                                   struct error *err UNUSED)
{
        struct dial_transport *t = container_of(transport, struct dial_transport, transport);
        struct dial_seat *s = &t->seats[to->number];
        struct dial_link *l = xcalloc(1, sizeof(*l));

        *l = (struct dial_link){ .link = { transport },
                                 .t = t,
                                 .cb = cb,
                                 .ctx = ctx,
                                 .rank = to->number,
                                 .since_ns = clock_ns() };
        if (s->waiting)
                give_seat_up(s);
        s->link = l;
        /* The first of the links that wait begins a new wait. */
        if (count_pending(t, false) == 1)
                t->begun_ns = t->said_ns = l->since_ns;
        uv_timer_start(&t->settle, on_settle, 0, 0);
        return &l->link;
}

/* Frees the link. The agent of an open link stays, and is given up by give_up_late_seats() when
 * another link waits. */
static void close_dial_link(struct link *link)
{
        struct dial_link *l = container_of(link, struct dial_link, link);

        l->t->seats[l->rank].link = NULL;
        free(l);
}

static void send_dial_link(struct link *link, struct buf *out)
{
        struct dial_link *l = container_of(link, struct dial_link, link);
        struct dial_peer *p = l->t->seats[l->rank].peer;

        if (!l->open || l->over || !p) {
                buf_clear(out);
                return;
        }
        dial_peer_send_bytes(p, out);
}

/* --- peers ------------------------------------------------------------------------------------ */

/* Lets a node wait for a taken seat, and says so on both sides. */
static void let_peer_wait(struct dial_seat *s, struct dial_peer *p)
{
        struct dial_end m = { .code = DIAL_RETRY };

        s->waiting = p;
        snprintf(m.text, sizeof(m.text), "node rank %u is taken by %s at %s", p->join.rank,
                 s->peer->join.name, s->peer->address);
        dial_peer_notify(p, &m);
        if (!s->told)
                log_warning(HN_NODE_RANK_TAKEN, "%s; %s at %s waits for it", m.text, p->join.name,
                            p->address);
        s->told = true;
}

/* A proved peer asks for a seat. A second node of the same rank waits while the first runs an
 * agent: a manager may have restarted the node before the loss is noticed. */
static void on_peer_joined(struct dial_peer *p, const struct dial_join *m)
{
        struct dial_transport *t = p->owner;
        uint32_t nodes = (uint32_t)t->d->place.nodes;
        struct dial_seat *s;

        dial_listener_join(&t->listener, p);
        t->d->met = true;
        if (t->destroying) {
                dial_peer_end(p, DIAL_END, &t->d->end);
        } else if (m->version != MSG_VERSION) {
                dial_peer_refuse(p, EX_PROTOCOL, "it speaks protocol version %u, node 0 speaks %d",
                                 m->version, MSG_VERSION);
        } else if (m->nodes != nodes) {
                dial_peer_refuse(p, EX_USAGE, "it was told of %u nodes, node 0 of %u", m->nodes,
                                 nodes);
        } else if (!m->rank || m->rank >= nodes) {
                dial_peer_refuse(p, EX_USAGE, "its node rank is %u, of 1 to %u", m->rank,
                                 nodes - 1);
        } else {
                s = &t->seats[m->rank];
                /* A single connection may wait, and only for the end of an agent. */
                if (s->peer && (!s->running || s->waiting)) {
                        dial_peer_refuse(p, DIAL_RETRY, "node rank %u is taken by %s at %s",
                                         m->rank, s->peer->join.name, s->peer->address);
                        return;
                }
                if (s->peer)
                        let_peer_wait(s, p);
                else
                        s->peer = p;
                log_line(LOG_INFO, "node %u is %s at %s", m->rank, p->join.name, p->address);
                settle_links(t);
        }
}

/* Bytes of the agent, or the words about the agent's end. */
static void on_peer_record(struct dial_peer *p, const struct dial_record *r)
{
        struct dial_transport *t = p->owner;
        struct dial_seat *s = &t->seats[p->join.rank];
        /* A connection that has lost the seat has no link any more. */
        struct dial_link *l = s->peer == p ? s->link : NULL;
        char text[200];

        if (r->type == DIAL_DATA) {
                if (l && l->open && !l->over)
                        l->cb->received(l->ctx, r->body, r->len);
        } else if (r->type == DIAL_EXIT && s->peer == p && s->running) {
                s->running = false;
                snprintf(text, sizeof(text), "%.*s", (int)MIN(r->len, sizeof(text) - 1),
                         (const char *)r->body);
                end_dial_link(l, text);
                settle_links(t);
        }
}

static void on_peer_writable(struct dial_peer *p)
{
        struct dial_transport *t = p->owner;
        const struct dial_seat *s = &t->seats[p->join.rank];

        if (s->peer == p && s->link && s->link->open && !s->link->over)
                s->link->cb->writable(s->link->ctx);
}

/* The connection is gone: the waiting node gets the seat. */
static void on_peer_broken(struct dial_peer *p, enum dial_peer_fault fault, const char *text)
{
        struct dial_transport *t = p->owner;
        struct dial_seat *s;
        char why[200];

        if (p->state != PEER_JOINED) {
                dial_listener_reject(&t->listener, p, fault);
                return;
        }
        /* A refused node may have named any rank. */
        s = p->join.rank < (uint32_t)t->d->place.nodes ? &t->seats[p->join.rank] : NULL;
        /* An end by node 0's order is no loss. */
        if (!s || p->ended || t->destroying)
                return;
        if (s->waiting == p)
                s->waiting = NULL;
        if (s->peer != p)
                return;
        s->peer = s->waiting;
        s->waiting = NULL;
        s->running = false;
        snprintf(why, sizeof(why), "connection lost (%s)", text);
        end_dial_link(s->link, why);
}

/* Frees the transport after the last handle. */
static void free_dial_transport(struct dial_transport *t)
{
        free(t->seats);
        free(t);
}

static void on_dial_handle_closed(uv_handle_t *h)
{
        struct dial_transport *t = h->data;

        if (--t->handles == 0)
                free_dial_transport(t);
}

static void on_dial_listener_closed(uv_handle_t *h)
{
        struct dial_listener *l = h->data;
        struct dial_transport *t = l->owner;

        if (--t->handles == 0)
                free_dial_transport(t);
}

/* Closes the timers when no peer is left: the end of a destroyed transport. */
static void close_when_idle(struct dial_transport *t)
{
        if (!t->destroying || !dial_listener_idle(&t->listener) ||
            uv_is_closing((uv_handle_t *)&t->ticker))
                return;
        uv_close((uv_handle_t *)&t->ticker, on_dial_handle_closed);
        uv_close((uv_handle_t *)&t->settle, on_dial_handle_closed);
}

static void on_dial_peer_closed(struct dial_peer *p)
{
        struct dial_transport *t = p->owner;

        dial_munge_forget(p);
        dial_listener_closed(&t->listener, p);
        close_when_idle(t);
}

static void on_peer_proof(struct dial_peer *p, const struct dial_record *r)
{
        struct dial_transport *t = p->owner;

        dial_munge_begin(t->munge, p, r);
}

static const struct dial_peer_ops munge_peer_ops = {
        .proof = on_peer_proof,
        .joined = on_peer_joined,
        .record = on_peer_record,
        .writable = on_peer_writable,
        .broken = on_peer_broken,
        .closed = on_dial_peer_closed,
};

static const struct dial_peer_ops peer_ops = {
        .joined = on_peer_joined,
        .record = on_peer_record,
        .writable = on_peer_writable,
        .broken = on_peer_broken,
        .closed = on_dial_peer_closed,
};

static void on_dial_tick(uv_timer_t *timer)
{
        struct dial_transport *t = timer->data;

        /* Also after the destruction, until the last node has closed. */
        dial_listener_linger(&t->listener);
        if (t->destroying)
                return;
        dial_listener_tick(&t->listener);
        give_up_late_seats(t);
        say_missing(t);
        fail_late_links(t);
        settle_links(t);
}

/* --- life cycle ------------------------------------------------------------------------------- */

static void destroy_dial_transport(struct transport *transport)
{
        struct dial_transport *t = container_of(transport, struct dial_transport, transport);
        struct dial_peer *p;

        t->destroying = true;
        uv_timer_stop(&t->settle);
        /* Keeps the loop alive until the last node has closed. */
        uv_ref((uv_handle_t *)&t->ticker);
        dial_munge_destroy(t->munge);
        if (t->listening)
                dial_listener_close(&t->listener, on_dial_listener_closed);
        LIST_FOREACH(p, &t->listener.joined, entry) dial_peer_end(p, DIAL_END, &t->d->end);
        close_when_idle(t);
}

struct transport *transport_dial_in_create(uv_loop_t *loop, struct dial_in *d, struct error *err)
{
        static const struct transport_ops ops = { .open = open_dial_link,
                                                  .close = close_dial_link,
                                                  .destroy = destroy_dial_transport,
                                                  .send = send_dial_link };
        struct dial_transport *t = xcalloc(1, sizeof(*t));

        t->transport.ops = &ops;
        t->loop = loop;
        t->d = d;
        t->seats = xcalloc((size_t)d->place.nodes, sizeof(*t->seats));
        uv_timer_init(loop, &t->ticker);
        uv_timer_init(loop, &t->settle);
        t->ticker.data = t->settle.data = t;
        t->handles = 2;
        uv_timer_start(&t->ticker, on_dial_tick, TICK_MS, TICK_MS);
        uv_unref((uv_handle_t *)&t->ticker);
        if (d->secret.kind == DIAL_SECRET_MUNGE)
                t->munge = dial_munge_create(loop, d->secret.file, err);
        t->listener.psk = d->secret.psk;
        t->listener.rejects = &d->rejects;
        t->listener.ops = t->munge ? &munge_peer_ops : &peer_ops;
        t->listener.owner = t;
        t->listening = (t->munge || d->secret.kind != DIAL_SECRET_MUNGE) &&
                       dial_listener_open(&t->listener, loop, d->place.host, d->place.port,
                                          on_dial_listener_closed, err) == 0;
        /* Also a handle that is being closed after a failure keeps the transport. */
        t->handles += t->listener.tcp.type == UV_TCP;
        if (!t->listening) {
                destroy_dial_transport(&t->transport);
                return NULL;
        }
        return &t->transport;
}
