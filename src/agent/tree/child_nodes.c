/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Down: MSG_TUNNEL carries bytes of the head for a child node through the tunnel filter into the
 * ssh process. Up: output of the process goes through the filter, which takes store requests and
 * pongs off, and leaves as MSG_TUNNEL again. A full uplink pauses the child read last;
 * child_nodes_resume() continues all.
 *
 * Pings: for every ping of the head the agent pings all children, and reports a watched child that
 * is silent (check_child_silence), and the end of its silence. A child agent's clock is measured
 * here and sent to the head only before events whose time matters. At the end of a process the
 * child's requests are cancelled first, then TUNNEL_ENDED is sent and the node is dropped.
 *
 * A prepared agent of a hold (@own) has neither filter nor pings here: another process is its head.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/uplink.h"
#include "agent/tree/child_agent.h"
#include "agent/tree/child_nodes.h"
#include "agent/tree/tunnel_filter.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/clock_offset.h"

/* Without a byte for this long a node is silent, or for half of a shorter limit. */
#define SILENT_NS INT64_C(3000000000)

/* A node with an agent, reached through this agent. */
struct child_node {
        struct child_nodes *all;
        uint32_t number;
        struct child_agent *child;           /* NULL only while being opened */
        struct tunnel_filter *tunnel_filter; /* NULL = cut off, or @own */
        bool own;                            /* an agent on this node, prepared for a run */
        bool pruned;                         /* an @own one: cut off */
        int64_t heard_ns;                    /* time of the last byte, uv_hrtime() */
        int64_t silence_ns;                  /* limit of the watch, 0 = not watched */
        bool silent;                         /* and the head has been told */
        struct clock_offset clock;
        bool clock_told; /* the head knows as much */
};

struct child_nodes {
        struct child_nodes_deps deps;
        struct child_node **v;
        size_t n;
        int64_t pinged_ns; /* when the head's last ping came; 0 = never, or the head sleeps */
        struct buf common; /* the last COMMON, a whole frame */
        bool leaving;      /* no further child is started */
};

static struct child_node *find_child_node(const struct child_nodes *t, uint32_t number)
{
        for (size_t i = 0; i < t->n; i++)
                if (t->v[i]->number == number)
                        return t->v[i];
        return NULL;
}

static void send_tunnel_up(const struct child_node *c, enum tunnel_kind kind, uint32_t value,
                           const void *data, size_t len)
{
        tunnel_encode(&c->all->deps.up->out, &(struct tunnel){ .child = c->number,
                                                               .kind = (uint8_t)kind,
                                                               .number = value,
                                                               .data = data,
                                                               .len = len });
}

/* --- bytes that pass through ------------------------------------------------------------------ */

static void pass_up(void *ctx, const void *data, size_t len)
{
        send_tunnel_up(ctx, TUNNEL_BYTES, 0, data, len);
}

static void pass_down(void *ctx, const void *data, size_t len, bool inserted)
{
        child_agent_send(((struct child_node *)ctx)->child, data, len, inserted);
}

/* --- pings and clocks ------------------------------------------------------------------------- */

static void on_pong(void *ctx, const struct ping *p)
{
        struct child_node *c = ctx;

        clock_offset_pong(&c->clock, p, (int64_t)uv_hrtime());
        c->clock_told = false;
}

static void send_child_clock(void *ctx)
{
        struct child_node *c = ctx;
        /* Rounded up: an error must not look smaller. */
        int64_t us = clock_offset_error(&c->clock, (int64_t)uv_hrtime()) / 1000 + 1;

        if (c->clock_told || us > UINT32_MAX) /* the clock was never measured, or long ago */
                return;
        c->clock_told = true;
        tunnel_encode(&c->all->deps.up->out,
                      &(struct tunnel){ .child = c->number,
                                        .kind = TUNNEL_CLOCK,
                                        .number = (uint32_t)us,
                                        .offset = (uint64_t)c->clock.offset_ns });
}

static void send_child_heard(struct child_node *c, int64_t now)
{
        /* 0 would mean heard at this moment. */
        uint32_t ms = (uint32_t)MIN((now - c->heard_ns) / 1000000 + 1, (int64_t)UINT32_MAX);

        send_tunnel_up(c, TUNNEL_HEARD, ms, NULL, 0);
}

static void ping_child_node(struct child_node *c, int64_t now)
{
        tunnel_filter_ping(c->tunnel_filter, &(struct ping){ .head_ns = (uint64_t)now });
}

static void on_ping_request(void *ctx)
{
        ping_child_node(ctx, (int64_t)uv_hrtime());
}

static void watch_child_node(struct child_node *c, uint32_t ms)
{
        int64_t now = (int64_t)uv_hrtime();

        c->silence_ns = (int64_t)ms * 1000000;
        c->heard_ns = now;
        c->silent = false;
        /* An agent listens for pings from the first ping on, so send one at once. */
        if (ms)
                ping_child_node(c, now);
}

/* Checks the silence of a child node, of which the head is told at each ping. A silent child gets
 * no pings, as from the head (heartbeat.c). Of a time without pings, when this process or a parent
 * hung, at most half of the limit counts, because nothing could be heard. Unread bytes are a sign
 * of life. */
static void check_child_silence(struct child_node *c, int64_t now, int64_t gap)
{
        int64_t most = c->silence_ns / 2;

        if (gap > most)
                c->heard_ns = MIN(now, c->heard_ns + gap - most);
        c->silent = now - c->heard_ns > MIN(most, SILENT_NS) && !child_agent_readable(c->child);
        if (c->silent)
                send_child_heard(c, now);
}

void child_nodes_ping(struct child_nodes *t, int64_t now_ns, int64_t age_ns)
{
        /* The first ping: no silence before it counts. */
        int64_t gap = t->pinged_ns ? now_ns - t->pinged_ns : INT64_MAX / 2;
        bool asleep = age_ns < 0;

        t->pinged_ns = asleep ? 0 : now_ns;
        for (size_t i = 0; i < t->n; i++) {
                struct child_node *c = t->v[i];

                if (!c->tunnel_filter || !c->silence_ns)
                        continue;
                if (!asleep)
                        check_child_silence(c, now_ns, gap);
                if (asleep || !c->silent)
                        /* A ping with time 0 passes the sleep on to the nodes below. */
                        ping_child_node(c, asleep ? 0 : MAX(now_ns - age_ns, INT64_C(1)));
        }
}

static const struct tunnel_filter_ops tunnel_filter_ops = {
        .up = pass_up,
        .down = pass_down,
        .pong = on_pong,
        .ping_request = on_ping_request,
        .news = send_child_clock,
};

/* Cancels the child's store requests and stops the forwarding. */
static void close_child_filter(struct child_node *c)
{
        tunnel_filter_destroy(c->tunnel_filter);
        c->tunnel_filter = NULL;
}

/* --- events of child agents ------------------------------------------------------------------- */

/* More bytes of this turn may still come; the bytes of the next turn pause the child. */
static void on_child_bytes(void *ctx, const void *data, size_t len)
{
        struct child_node *c = ctx;

        if (c->own && !c->pruned) {
                pass_up(c, data, len);
                if (uplink_full(c->all->deps.up))
                        child_agent_pause(c->child, true);
                return;
        }
        if (!c->tunnel_filter) /* cut off: the bytes are of no use */
                return;
        c->heard_ns = (int64_t)uv_hrtime();
        if (c->silent)
                send_child_heard(c, c->heard_ns);
        c->silent = false;
        if (tunnel_filter_up(c->tunnel_filter, data, len) < 0) {
                log_line(LOG_ERROR, "out of memory for the output of a child node");
                child_agent_end(c->child);
        } else if (uplink_full(c->all->deps.up)) {
                child_agent_pause(c->child, true);
        }
}

static void on_child_took(void *ctx, uint32_t bytes)
{
        send_tunnel_up(ctx, TUNNEL_TOOK, bytes, NULL, 0);
}

static void on_child_stderr(void *ctx, const void *text, size_t len)
{
        send_tunnel_up(ctx, TUNNEL_NOISE, 0, text, len);
}

static void drop_child_node(struct child_node *c)
{
        struct child_nodes *t = c->all;

        for (size_t i = 0; i < t->n; i++)
                if (t->v[i] == c)
                        t->v[i] = t->v[--t->n];
        close_child_filter(c);
        if (c->child)
                child_agent_destroy(c->child);
        free(c);
}

static void on_child_ended(void *ctx, int status)
{
        struct child_node *c = ctx;

        close_child_filter(c); /* the head gets the child's requests before the end */
        /* The head learns how long before the end the node was heard. */
        if (c->silence_ns)
                send_child_heard(c, (int64_t)uv_hrtime());
        send_tunnel_up(c, TUNNEL_ENDED, (uint32_t)status, NULL, 0);
        drop_child_node(c);
}

static const struct child_agent_ops ops = {
        .received = on_child_bytes,
        .written = on_child_took,
        .noise = on_child_stderr,
        .ended = on_child_ended,
};

/* --- orders ----------------------------------------------------------------------------------- */

/* Keeps the frame for this node's LAUNCH and for child nodes, which may ask for the frame later. */
void child_nodes_on_common(void *nodes, const struct frame *f)
{
        struct child_nodes *t = nodes;
        struct buf *common = &t->common;
        size_t mark;

        buf_finish(common);
        mark = frame_begin(common, MSG_COMMON);
        buf_append(common, f->body, f->len);
        frame_end(common, mark);
}

/* A file with the keys of the other node, malloc'ed path; NULL without keys. */
static int write_known_hosts(const struct child_nodes_deps *deps, const struct child_agent_order *o,
                             char **ret, struct error *err)
{
        const char *dir;
        char *path;
        int fd, r;

        if (!*o->known_hosts)
                return 0;
        dir = deps->need_dir(deps->ctx, err);
        if (!dir)
                return -err->code;
        path = xasprintf("%s/known-%u", dir, o->number);
        /* Ranks may have put a link or a FIFO there. */
        unlink(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : fd_write_all(fd, o->known_hosts, strlen(o->known_hosts));
        fd_close(fd);
        if (r < 0) {
                err_set(err, -r, "cannot write %s: %s", path, strerror(-r));
                free(path);
                return r;
        }
        *ret = path;
        return 0;
}

static int open_child_node(struct child_node *c, const struct child_agent_order *o,
                           struct error *err)
{
        char *known_hosts = NULL;

        if (find_child_node(c->all, o->number))
                return err_set(err, EEXIST, "child node %u is connected already", o->number);
        if (c->all->leaving)
                return err_set(err, ESHUTDOWN, "the agent is leaving");
        c->own = !o->argv.n;
        if (!c->own)
                c->tunnel_filter = tunnel_filter_create(c->all->deps.relay, &tunnel_filter_ops, c);
        if (!c->own && !c->tunnel_filter)
                return err_set(err, ENOMEM, "out of memory");
        if (write_known_hosts(&c->all->deps, o, &known_hosts, err) == 0)
                c->child = child_agent_open(c->all->deps.loop, o, known_hosts, &ops, c, err);
        free(known_hosts);
        return c->child ? 0 : -err->code;
}

void child_nodes_on_child_agent(void *nodes, const struct frame *f)
{
        struct child_nodes *t = nodes;
        static const char no_agent[] = CHILD_AGENT_NO_AGENT "\n";
        struct child_agent_order o;
        struct child_node *c;
        struct error err;

        if (child_agent_order_decode(&o, f, NULL) < 0)
                return;
        c = xcalloc(1, sizeof(*c));
        *c = (struct child_node){ .all = t, .number = o.number, .clock = CLOCK_OFFSET_INIT };
        if (open_child_node(c, &o, &err) == 0) {
                t->v = xrealloc(t->v, t->n + 1, sizeof(c));
                t->v[t->n++] = c;
                /* sshd omits the variable when agent forwarding is forbidden. */
                if (o.lent_agent && !getenv("SSH_AUTH_SOCK"))
                        send_tunnel_up(c, TUNNEL_NOISE, 0, no_agent, strlen(no_agent));
        } else {
                send_tunnel_up(c, TUNNEL_FAILED, 0, err.text, strlen(err.text));
                drop_child_node(c);
        }
        child_agent_order_finish(&o);
}

void child_nodes_on_prune(void *nodes, const struct frame *f)
{
        struct child_nodes *t = nodes;
        struct child_node *c;
        uint32_t number;

        if (number_decode(&number, f, NULL) < 0)
                return;
        c = find_child_node(t, number);
        if (!c)
                return;
        /* First: nothing of a cut-off node may reach the head any more. */
        close_child_filter(c);
        c->pruned = true;
        child_agent_end(c->child);
}

static void send_child_common(struct child_node *c, const struct tunnel *m)
{
        const struct buf *b = &c->all->common;

        /* In this order, so that no sum of two numbers of a message can overflow. */
        if (m->offset > buf_len(b) || m->number > buf_len(b) - m->offset)
                log_line(LOG_ERROR,
                         "a child node was to get more of COMMON than the head has sent");
        else
                tunnel_filter_down(c->tunnel_filter, buf_data(b) + m->offset, m->number);
}

/* Bytes for an ended child node are dropped. */
void child_nodes_on_tunnel(void *nodes, const struct frame *f)
{
        struct child_nodes *t = nodes;
        struct child_node *c;
        struct tunnel m;

        if (tunnel_decode(&m, f, NULL) < 0)
                return;
        c = find_child_node(t, m.child);
        if (c && c->own && m.kind == TUNNEL_BYTES)
                child_agent_send(c->child, m.data, m.len, false);
        if (!c || !c->tunnel_filter)
                return;
        if (m.kind == TUNNEL_BYTES)
                tunnel_filter_down(c->tunnel_filter, m.data, m.len);
        else if (m.kind == TUNNEL_UPLOAD)
                child_agent_upload(c->child);
        else if (m.kind == TUNNEL_COMMON)
                send_child_common(c, &m);
        else if (m.kind == TUNNEL_WATCH)
                watch_child_node(c, m.number);
}

/* --- all child agents ------------------------------------------------------------------------- */

bool child_nodes_any(const struct child_nodes *t)
{
        return t->n;
}

bool child_nodes_have(const struct child_nodes *t, pid_t pid)
{
        for (size_t i = 0; i < t->n; i++)
                if (child_agent_pid(t->v[i]->child) == pid)
                        return true;
        return false;
}

int child_nodes_peek_common(const struct child_nodes *t, struct frame *ret, struct error *err)
{
        return frame_peek(&t->common, ret, err);
}

void child_nodes_drop_common(struct child_nodes *t)
{
        if (!t->n)
                buf_finish(&t->common);
}

void child_nodes_reaped(struct child_nodes *t, pid_t pid, int status)
{
        for (size_t i = 0; i < t->n; i++)
                if (child_agent_pid(t->v[i]->child) == pid)
                        child_agent_reaped(t->v[i]->child, status);
}

void child_nodes_resume(struct child_nodes *t)
{
        for (size_t i = 0; i < t->n; i++)
                child_agent_pause(t->v[i]->child, false);
}

void child_nodes_end(struct child_nodes *t)
{
        for (size_t i = 0; i < t->n; i++)
                child_agent_end(t->v[i]->child);
}

bool child_nodes_signal(struct child_nodes *t, int signo, bool leaves)
{
        bool any = false;

        for (size_t i = 0; i < t->n; i++) {
                pid_t pid = t->v[i]->own ? child_agent_pid(t->v[i]->child) : 0;

                any |= t->v[i]->own;
                if (pid)
                        kill(pid, signo);
        }
        t->leaving |= any && leaves;
        return any;
}

void child_nodes_close(struct child_nodes *t)
{
        while (t->n)
                drop_child_node(t->v[0]);
        free(t->v);
        t->v = NULL;
        buf_finish(&t->common);
}

struct child_nodes *child_nodes_create(const struct child_nodes_deps *deps)
{
        struct child_nodes *t = xcalloc(1, sizeof(*t));

        t->deps = *deps;
        return t;
}

void child_nodes_destroy(struct child_nodes *t)
{
        free(t);
}
