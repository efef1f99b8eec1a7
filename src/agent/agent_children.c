/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_private.h"
#include "agent/tree/child_agent.h"
#include "agent/tree/tunnel_filter.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/clock_offset.h"

/* A node that we carry. */
struct carried {
        struct agent *agent;
        struct child *child;
        struct tunnel_filter *tunnel_filter; /* NULL = it is cut off */
        int64_t heard_ns;                    /* its last byte, uv_hrtime() */
        int64_t silence_ns;                  /* for which it is watched, 0 = not */
        struct clock_offset clock;
        bool clock_told; /* the head knows as much */
};

static struct carried *find(struct agent *a, uint32_t number)
{
        for (size_t i = 0; i < a->n_carried; i++)
                if (child_agent_number(a->carried[i]->child) == number)
                        return a->carried[i];
        return NULL;
}

static void tell(struct agent *a, uint32_t number, enum tunnel_kind kind, uint32_t value,
                 const void *data, size_t len)
{
        tunnel_encode(uplink_out(&a->up), &(struct tunnel){ .child = number,
                                                            .kind = (uint8_t)kind,
                                                            .number = value,
                                                            .data = data,
                                                            .len = len });
}

/* --- what passes through ---------------------------------------------------------------------- */

static void pass_up(void *ctx, const void *data, size_t len)
{
        struct carried *c = ctx;

        tell(c->agent, child_agent_number(c->child), TUNNEL_BYTES, 0, data, len);
}

static void pass_down(void *ctx, const void *data, size_t len)
{
        child_agent_send(((struct carried *)ctx)->child, data, len);
}

static void insert(void *ctx, const void *data, size_t len)
{
        child_agent_insert(((struct carried *)ctx)->child, data, len);
}

/* --- their pulse ------------------------------------------------------------------------------ */

static int64_t clock_now(void)
{
        return (int64_t)uv_hrtime();
}

static void on_pong(void *ctx, const struct ping *p)
{
        struct carried *c = ctx;

        clock_offset_pong(&c->clock, p, clock_now());
        c->clock_told = false;
}

static void tell_clock(void *ctx)
{
        struct carried *c = ctx;
        int64_t us = clock_offset_error(&c->clock, clock_now()) / 1000 + 1;

        if (c->clock_told || us > UINT32_MAX)
                return;
        c->clock_told = true;
        tunnel_encode(uplink_out(&c->agent->up),
                      &(struct tunnel){ .child = child_agent_number(c->child),
                                        .kind = TUNNEL_CLOCK,
                                        .number = (uint32_t)us,
                                        .offset = (uint64_t)c->clock.offset_ns });
}

static void tell_heard(struct carried *c, int64_t now)
{
        uint32_t ms = (uint32_t)MIN((now - c->heard_ns) / 1000000 + 1, (int64_t)UINT32_MAX);

        tell(c->agent, child_agent_number(c->child), TUNNEL_HEARD, ms, NULL, 0);
}

static void ping(struct carried *c, int64_t now)
{
        tunnel_filter_ping(c->tunnel_filter, &(struct ping){ .head_ns = (uint64_t)now });
}

static void on_ping_request(void *ctx)
{
        ping(ctx, clock_now());
}

static void watch(struct carried *c, uint32_t ms)
{
        int64_t now = clock_now();

        c->silence_ns = (int64_t)ms * 1000000;
        c->heard_ns = now;
        /* The first one at once: it is what makes agents listen for the next. */
        if (ms)
                ping(c, now);
}

/* Of a time without pings, when we hung or somebody above did, no more than half of what is allowed
 * counts: nothing could be heard. What waits to be read is a sign of life. */
static void judge(struct carried *c, int64_t now, int64_t gap)
{
        int64_t most = c->silence_ns / 2;

        if (gap > most)
                c->heard_ns = MIN(now, c->heard_ns + gap - most);
        if (now - c->heard_ns > c->silence_ns && !child_agent_readable(c->child))
                tell_heard(c, now);
}

void agent_children_beat(struct agent *a, int64_t now_ns, bool asleep)
{
        int64_t gap = a->beat_ns ? now_ns - a->beat_ns : INT64_MAX / 2;

        a->beat_ns = asleep ? 0 : now_ns;
        for (size_t i = 0; i < a->n_carried; i++) {
                struct carried *c = a->carried[i];

                if (!c->tunnel_filter || !c->silence_ns)
                        continue;
                if (!asleep)
                        judge(c, now_ns, gap);
                ping(c, asleep ? 0 : now_ns);
        }
}

static const struct tunnel_filter_ops tunnel_filter_ops = {
        .up = pass_up,
        .down = pass_down,
        .insert = insert,
        .pong = on_pong,
        .knock = on_ping_request,
        .news = tell_clock,
};

/* What it has asked for is nobody's wish any more. */
static void cut_off(struct carried *c)
{
        tunnel_filter_destroy(c->tunnel_filter);
        c->tunnel_filter = NULL;
}

/* --- what branches do ------------------------------------------------------------------------- */

/* Others of this loop's turn may still come: they are paused by the next one's bytes. */
static void on_said(void *ctx, struct child *b, const void *data, size_t len)
{
        struct carried *c = ctx;

        if (!c->tunnel_filter)
                return;
        c->heard_ns = clock_now();
        if (tunnel_filter_up(c->tunnel_filter, data, len) < 0) {
                log_line(LOG_ERROR, "out of memory for what a carried node says");
                child_agent_end(b);
        } else if (uplink_full(&c->agent->up)) {
                child_agent_pause(b, true);
        }
}

static void on_took(void *ctx, struct child *b, uint32_t bytes)
{
        tell(((struct carried *)ctx)->agent, child_agent_number(b), TUNNEL_TOOK, bytes, NULL, 0);
}

static void on_noise(void *ctx, struct child *b, const void *text, size_t len)
{
        tell(((struct carried *)ctx)->agent, child_agent_number(b), TUNNEL_NOISE, 0, text, len);
}

static bool is_branch(void *ctx, pid_t pid)
{
        const struct agent *a = ctx;

        for (size_t i = 0; i < a->n_carried; i++)
                if (child_agent_pid(a->carried[i]->child) == pid)
                        return true;
        return false;
}

/* Who looks for children of the attempt must know ours. */
static void count_changed(struct agent *a)
{
        a->contain.is_other = a->n_carried ? is_branch : NULL;
        a->contain.other_ctx = a;
}

static void forget(struct carried *c)
{
        struct agent *a = c->agent;

        for (size_t i = 0; i < a->n_carried; i++)
                if (a->carried[i] == c)
                        a->carried[i] = a->carried[--a->n_carried];
        cut_off(c);
        child_agent_destroy(c->child);
        free(c);
        count_changed(a);
}

static void on_ended(void *ctx, struct child *b, int status)
{
        struct carried *c = ctx;

        cut_off(c); /* what it asked for is heard before its end */
        if (c->silence_ns)
                tell_heard(c, clock_now());
        tell(c->agent, child_agent_number(b), TUNNEL_ENDED, (uint32_t)status, NULL, 0);
        forget(c);
}

static const struct child_agent_ops ops = {
        .said = on_said,
        .took = on_took,
        .noise = on_noise,
        .ended = on_ended,
};

/* --- orders ----------------------------------------------------------------------------------- */

/* A file with the keys of the other node, malloc'ed path; NULL without keys. */
static int write_keys(struct agent *a, const struct child_agent_order *o, char **ret,
                      struct error *err)
{
        char *name, *path;
        int fd, r;

        if (!*o->known_hosts)
                return 0;
        if (agent_need_dir(a, err) < 0)
                return -err->code;
        name = xasprintf("known-%u", o->number);
        path = job_dir_path(&a->dir, name);
        free(name);
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

/* sshd leaves the variable out when it is told not to forward. */
static void need_agent(struct agent *a, const struct child_agent_order *o)
{
        static const char text[] = CHILD_AGENT_NO_AGENT "\n";

        if (o->lent_agent && !getenv("SSH_AUTH_SOCK"))
                tell(a, o->number, TUNNEL_NOISE, 0, text, strlen(text));
}

static int open_branch(struct carried *c, const struct child_agent_order *o, struct error *err)
{
        char *known_hosts = NULL;

        if (find(c->agent, o->number))
                return err_set(err, EEXIST, "branch %u is there already", o->number);
        if (write_keys(c->agent, o, &known_hosts, err) == 0)
                c->child = child_agent_open(c->agent->loop, o, known_hosts, &ops, c, err);
        free(known_hosts);
        return c->child ? 0 : -err->code;
}

static int begin(struct agent *a, const struct child_agent_order *o, struct error *err)
{
        struct carried *c = xcalloc(1, sizeof(*c));
        int r = 0;

        c->agent = a;
        c->clock = (struct clock_offset)FAR_CLOCK_INIT;
        c->tunnel_filter = tunnel_filter_create(a->relay, &tunnel_filter_ops, c);
        if (!c->tunnel_filter)
                r = err_set(err, ENOMEM, "out of memory");
        else
                r = open_branch(c, o, err);
        if (r < 0) {
                cut_off(c);
                free(c);
                return r;
        }
        a->carried = xrealloc(a->carried, a->n_carried + 1, sizeof(struct carried *));
        a->carried[a->n_carried++] = c;
        count_changed(a);
        return 0;
}

void agent_on_child_agent(struct agent *a, const struct frame *f)
{
        struct error err = { 0 };
        struct child_agent_order o;

        if (child_agent_order_decode(&o, f, &err) < 0)
                return;
        if (begin(a, &o, &err) == 0)
                need_agent(a, &o);
        else
                tell(a, o.number, TUNNEL_FAILED, 0, err.text, strlen(err.text));
        child_agent_order_finish(&o);
}

void agent_on_prune(struct agent *a, const struct frame *f)
{
        struct carried *c;
        struct error err;
        uint32_t number;

        if (prune_decode(&number, f, &err) < 0)
                return;
        c = find(a, number);
        if (!c)
                return;
        cut_off(c);
        child_agent_end(c->child);
}

/* The head keeps frames whole: whatever it sent through before is at an end of one. */
static void give(struct carried *c, const struct tunnel *m)
{
        CLEANUP(buf_finish) struct buf chunk = BUF_INIT;

        if (agent_push_chunk(c->agent, &chunk, m->entry, m->offset, m->number) == 0)
                tunnel_filter_down(c->tunnel_filter, buf_data(&chunk), buf_len(&chunk));
}

static void give_common(struct carried *c, const struct tunnel *m)
{
        const struct buf *b = &c->agent->common;

        if (m->offset > buf_len(b) || m->number > buf_len(b) - m->offset)
                log_line(LOG_ERROR, "a carried node cannot have what was not sent");
        else
                tunnel_filter_down(c->tunnel_filter, buf_data(b) + m->offset, m->number);
}

/* Bytes for a branch that has ended meanwhile are nobody's. */
void agent_on_tunnel(struct agent *a, const struct frame *f)
{
        struct carried *c;
        struct error err;
        struct tunnel m;

        if (tunnel_decode(&m, f, &err) < 0)
                return;
        c = find(a, m.child);
        if (!c || !c->tunnel_filter)
                return;
        if (m.kind == TUNNEL_BYTES)
                tunnel_filter_down(c->tunnel_filter, m.data, m.len);
        else if (m.kind == TUNNEL_UPLOAD)
                child_agent_upload(c->child);
        else if (m.kind == TUNNEL_GIVE)
                give(c, &m);
        else if (m.kind == TUNNEL_COMMON)
                give_common(c, &m);
        else if (m.kind == TUNNEL_WATCH)
                watch(c, m.number);
}

/* --- their processes -------------------------------------------------------------------------- */

void agent_branch_reaped(struct agent *a, pid_t pid, int status)
{
        for (size_t i = 0; i < a->n_carried; i++)
                if (child_agent_pid(a->carried[i]->child) == pid)
                        child_agent_reaped(a->carried[i]->child, status);
}

void agent_children_resume(struct agent *a)
{
        for (size_t i = 0; i < a->n_carried; i++)
                child_agent_pause(a->carried[i]->child, false);
}

void agent_children_end(struct agent *a)
{
        for (size_t i = 0; i < a->n_carried; i++)
                child_agent_end(a->carried[i]->child);
}

void agent_children_close(struct agent *a)
{
        while (a->n_carried)
                forget(a->carried[0]);
        free(a->carried);
        a->carried = NULL;
}
