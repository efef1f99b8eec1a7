/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent is STARTING until HELLO, READY until a run takes the agent, TAKEN while bytes pass, and
 * ENDING from PRUNE, or from the last byte, to TUNNEL_ENDED. Numbers are never used again, so late
 * messages about an agent reach no other agent.
 *
 * Up: frames of an agent without a run are read here. A PING_REQUEST is answered, or the agent
 * would take the head for lost; PONGs measure the agent's clock, for the time in the HELLO of the
 * run. Bytes of a TAKEN agent are written to the run's stream; the rest waits in libuv, bounded
 * like the unread messages of a node. Down: bytes are read from the run only while the window of
 * the tunnel (TUNNEL_WINDOW) has room.
 */
#include "head/hold/prepared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/clock_offset.h"
#include "wire/tree_msg.h"

enum {
        TRIES = 3, /* in a row, to prepare an agent */
        READ_SIZE = 64 << 10,
        UNREAD_MAX = 1 << 30, /* as of a node (NODE_UNREAD_MAX) */
};

enum agent_state { AGENT_STARTING, AGENT_READY, AGENT_TAKEN, AGENT_ENDING };

struct prepared_agent {
        struct prepared_agents *all;
        struct prepared_agent *next;
        size_t node;
        uint32_t number;
        uint64_t run; /* when TAKEN */
        enum agent_state state;
        struct buf in;  /* bytes from the agent, until a run takes the agent */
        struct buf out; /* bytes for the agent, until there is credit */
        size_t credit;
        bool greeted; /* the banner has come */
        struct hello hello;
        struct clock_offset clock;
        bool has_pipe, reading;
        uv_pipe_t pipe; /* our end of the run's stream, when TAKEN */
        uv_shutdown_t shut;
};

struct prepared_node {
        struct prepared_agent *spare; /* STARTING or READY; NULL = none */
        int tries;                    /* ended unused since an agent was of use */
};

struct prepared_agents {
        uv_loop_t *loop;
        struct hold_nodes nodes;
        const struct prepared_ops *ops;
        void *ctx;
        struct prepared_node *v;
        size_t n;
        struct prepared_agent *agents;
        size_t n_taken;
        uint32_t last_number;
        int open; /* handles and this struct itself */
        bool closing;
};

static void unref_prepared(struct prepared_agents *p)
{
        if (--p->open)
                return;
        free(p->v);
        free(p);
}

/* --- frames for the node ---------------------------------------------------------------------- */

/* Returns the buffer for frames to the agent's node; NULL = the node is lost. */
static struct buf *node_out(const struct prepared_agent *a)
{
        return a->all->nodes.out(a->all->nodes.ctx, a->node);
}

static const char *node_name(const struct prepared_agents *p, size_t i)
{
        return p->nodes.name(p->nodes.ctx, i);
}

/* Sends as many bytes as the credit allows. */
static void send_down(struct prepared_agent *a)
{
        size_t n = MIN(buf_len(&a->out), a->credit);
        struct buf *to = n ? node_out(a) : NULL;

        if (!to)
                return;
        tunnel_encode(to, &(struct tunnel){ .child = a->number,
                                            .kind = TUNNEL_BYTES,
                                            .data = buf_data(&a->out),
                                            .len = n });
        a->credit -= n;
        buf_consume(&a->out, n);
        if (!buf_len(&a->out))
                buf_finish(&a->out);
}

static void prune_agent(struct prepared_agent *a)
{
        struct buf *to = a->state == AGENT_ENDING ? NULL : node_out(a);

        if (to)
                number_encode(to, MSG_PRUNE, a->number);
        if (a->all->v[a->node].spare == a)
                a->all->v[a->node].spare = NULL;
        a->state = AGENT_ENDING;
}

/* --- the run's stream ------------------------------------------------------------------------- */

static void on_agent_closed(uv_handle_t *h)
{
        struct prepared_agent *a = h->data;
        struct prepared_agents *p = a->all;

        free(a);
        unref_prepared(p);
}

/* Takes the agent out of the list, and frees the memory when the handle is closed. */
static void drop_agent(struct prepared_agent *a)
{
        struct prepared_agents *p = a->all;
        struct prepared_agent **at = &p->agents;

        while (*at != a)
                at = &(*at)->next;
        *at = a->next;
        if (p->v[a->node].spare == a)
                p->v[a->node].spare = NULL;
        hello_finish(&a->hello);
        buf_finish(&a->in);
        buf_finish(&a->out);
        if (a->has_pipe)
                p->n_taken--;
        if (a->has_pipe && !uv_is_closing((uv_handle_t *)&a->pipe))
                uv_close((uv_handle_t *)&a->pipe, on_agent_closed);
        else if (!a->has_pipe)
                free(a);
}

static void on_agent_shut(uv_shutdown_t *req, int status UNUSED)
{
        struct prepared_agent *a = req->data;

        if (!uv_is_closing((uv_handle_t *)&a->pipe))
                drop_agent(a);
}

/* Ends the agent's stream: the run reads the last bytes, and then the end of the stream. */
static void end_agent(struct prepared_agent *a)
{
        a->state = AGENT_ENDING;
        if (a->has_pipe)
                uv_read_stop((uv_stream_t *)&a->pipe);
        a->shut.data = a;
        if (!a->has_pipe || uv_shutdown(&a->shut, (uv_stream_t *)&a->pipe, on_agent_shut) < 0)
                drop_agent(a);
}

struct run_bytes {
        uv_write_t req;
        struct prepared_agent *agent;
        char data[];
};

static void on_run_bytes_written(uv_write_t *req, int status UNUSED)
{
        free(container_of(req, struct run_bytes, req));
}

/* Writes bytes of the agent to the run. */
static void pass_to_run(struct prepared_agent *a, const void *data, size_t len)
{
        uv_buf_t piece = uv_buf_init((char *)(uintptr_t)data, (unsigned)len);
        uv_stream_t *s = (uv_stream_t *)&a->pipe;
        int n = uv_stream_get_write_queue_size(s) ? UV_EAGAIN : uv_try_write(s, &piece, 1);
        struct run_bytes *w;

        /* A lost run is noticed at the end of the stream. */
        if (n == (int)len || (n < 0 && n != UV_EAGAIN))
                return;
        n = MAX(n, 0);
        if (uv_stream_get_write_queue_size(s) + len > UNREAD_MAX) {
                log_line(LOG_WARN, "ending the agent on %s: its run leaves %d MiB unread",
                         node_name(a->all, a->node), UNREAD_MAX >> 20);
                prune_agent(a);
                return;
        }
        w = xcalloc(1, sizeof(*w) + len - (size_t)n);
        memcpy(w->data, (const char *)data + n, len - (size_t)n);
        piece = uv_buf_init(w->data, (unsigned)(len - (size_t)n));
        if (uv_write(&w->req, s, &piece, 1, on_run_bytes_written) < 0)
                free(w);
}

static void on_run_alloc(uv_handle_t *h, size_t size UNUSED, uv_buf_t *ret)
{
        struct prepared_agent *a = h->data;
        char *room = buf_reserve(&a->out, READ_SIZE);

        *ret = uv_buf_init(room, room ? READ_SIZE : 0);
}

static void read_run(struct prepared_agent *a);

/* Takes bytes of the run. The end of the stream, also by a kill, ends the agent; the next agent
 * does not wait for ranks that take their time to end. */
static void on_run_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b UNUSED)
{
        struct prepared_agent *a = s->data;

        if (n < 0) {
                uv_read_stop(s);
                a->reading = false;
                prune_agent(a);
                prepared_begin(a->all, a->node);
                return;
        }
        buf_advance(&a->out, (size_t)n);
        send_down(a);
        read_run(a);
}

/* Reads on while the window has room. */
static void read_run(struct prepared_agent *a)
{
        bool wanted = a->state == AGENT_TAKEN && buf_len(&a->out) < TUNNEL_WINDOW;

        if (wanted == a->reading)
                return;
        a->reading = wanted;
        if (wanted)
                uv_read_start((uv_stream_t *)&a->pipe, on_run_alloc, on_run_read);
        else
                uv_read_stop((uv_stream_t *)&a->pipe);
}

/* --- before a run takes the agent ------------------------------------------------------------- */

void prepared_begin(struct prepared_agents *p, size_t i)
{
        struct buf *to = p->closing || p->v[i].spare ? NULL : p->nodes.out(p->nodes.ctx, i);
        struct prepared_agent *a;

        if (!to)
                return;
        a = xcalloc(1, sizeof(*a));
        *a = (struct prepared_agent){ .all = p,
                                      .next = p->agents,
                                      .node = i,
                                      .number = ++p->last_number,
                                      .credit = TUNNEL_WINDOW,
                                      .clock = CLOCK_OFFSET_INIT };
        p->agents = p->v[i].spare = a;
        child_agent_order_encode(to, &(struct child_agent_order){ .number = a->number });
}

static void send_frames(struct prepared_agent *a, const struct buf *frames)
{
        buf_append(&a->out, buf_data(frames), buf_len(frames));
        send_down(a);
}

static void ping_agent(struct prepared_agent *a)
{
        CLEANUP(buf_finish) struct buf ping = BUF_INIT;

        ping_encode(&ping, MSG_PING, &(struct ping){ .head_ns = (uint64_t)clock_ns() });
        send_frames(a, &ping);
}

/* Gives up preparing agents on the node: the next agent would be no better. */
static void refuse_agent(struct prepared_agent *a)
{
        struct prepared_agents *p = a->all;

        log_line(LOG_WARN, "cannot prepare an agent on %s: malformed greeting",
                 node_name(a->all, a->node));
        p->v[a->node].tries = TRIES;
        prune_agent(a);
        p->ops->changed(p->ctx, a->node);
}

/* Takes a frame of an agent without a run. */
static void read_agent_frame(struct prepared_agent *a, const struct frame *f)
{
        struct prepared_agents *p = a->all;
        struct ping pong;
        struct error err;

        if (a->state == AGENT_STARTING) {
                if (f->type != MSG_HELLO || hello_decode(&a->hello, f, &err) < 0 ||
                    a->hello.version != MSG_VERSION) {
                        refuse_agent(a);
                        return;
                }
                a->clock.offset_ns = (int64_t)(a->hello.mono_ns - (uint64_t)clock_ns());
                a->state = AGENT_READY;
                ping_agent(a);
                p->ops->changed(p->ctx, a->node);
        } else if (f->type == MSG_PING_REQUEST) {
                ping_agent(a);
        } else if (f->type == MSG_PONG) {
                if (ping_decode(&pong, f, &err) == 0 && pong.head_ns <= (uint64_t)clock_ns())
                        clock_offset_pong(&a->clock, &pong, clock_ns());
        } else if (p->ops->frame) {
                if (f->type == MSG_WARMED)
                        p->v[a->node].tries = 0;
                p->ops->frame(p->ctx, a->node, f);
        }
}

static void read_agent_bytes(struct prepared_agent *a, const void *data, size_t len)
{
        struct error err;
        struct frame f;
        size_t magic = strlen(MSG_MAGIC);
        int r = 0;

        buf_append(&a->in, data, len);
        if (!a->greeted && buf_len(&a->in) >= magic) {
                /* An agent prints nothing before its banner. */
                a->greeted = !memcmp(buf_data(&a->in), MSG_MAGIC, magic);
                buf_consume(&a->in, magic);
                if (!a->greeted)
                        refuse_agent(a);
        }
        /* After any frame the agent may be TAKEN: the rest of the bytes belongs to the run. */
        while (a->greeted && a->state < AGENT_TAKEN && (r = frame_peek(&a->in, &f, &err)) > 0) {
                struct buf rest = a->in;

                a->in = (struct buf)BUF_INIT;
                buf_append(&a->in, buf_data(&rest) + FRAME_HEADER + f.len,
                           buf_len(&rest) - FRAME_HEADER - f.len);
                read_agent_frame(a, &f);
                buf_finish(&rest);
        }
        if (r < 0)
                refuse_agent(a);
}

/* Takes note of the end of an agent, and replaces it, unless TRIES spare agents have failed in a
 * row. An agent that a run has taken is replaced when it or the run is over, not earlier: starting
 * one would take processors from the run's ranks. */
static void note_agent_end(struct prepared_agent *a, int status, const char *why)
{
        struct prepared_agents *p = a->all;
        size_t i = a->node;
        bool was_spare = p->v[i].spare == a;

        /* The reason first: the end of the stream brings none. */
        if (a->state == AGENT_TAKEN)
                p->ops->ended(p->ctx, i, a->run, status);
        end_agent(a);
        if (p->closing || p->v[i].spare)
                return;
        p->v[i].tries += was_spare;
        if (p->v[i].tries < TRIES) {
                prepared_begin(p, i);
                return;
        }
        if (!was_spare)
                return;
        log_line(LOG_WARN, "cannot prepare an agent on %s: %s", node_name(p, i), why);
        p->ops->changed(p->ctx, i);
}

static struct prepared_agent *find_agent(const struct prepared_agents *p, uint32_t number)
{
        struct prepared_agent *a = p->agents;

        while (a && a->number != number)
                a = a->next;
        return a;
}

int prepared_receive(struct prepared_agents *p, size_t i, const struct frame *f, struct error *err)
{
        struct prepared_agent *a;
        struct tunnel m;
        char why[128];

        if (tunnel_decode(&m, f, err) < 0)
                return -EPROTO;
        a = find_agent(p, m.child);
        if (!a || a->node != i)
                return 0; /* an agent given up before */
        switch (m.kind) {
        case TUNNEL_BYTES:
                if (a->state == AGENT_TAKEN)
                        pass_to_run(a, m.data, m.len);
                else if (a->state < AGENT_TAKEN)
                        read_agent_bytes(a, m.data, m.len);
                return 0;
        case TUNNEL_TOOK:
                if (m.number > TUNNEL_WINDOW - a->credit)
                        return err_set(err, EPROTO,
                                       "message out of turn: TUNNEL, more bytes taken than sent");
                a->credit += m.number;
                send_down(a);
                if (a->state == AGENT_TAKEN)
                        read_run(a);
                return 0;
        case TUNNEL_NOISE:
                log_line(LOG_DEBUG, "%s: agent says: %.*s", node_name(p, i), (int)m.len,
                         (const char *)m.data);
                return 0;
        case TUNNEL_ENDED:
                note_agent_end(a, (int)m.number,
                               a->state == AGENT_READY ? "the agent ended before a run took it"
                                                       : "the agent ended before its greeting");
                return 0;
        case TUNNEL_FAILED:
                snprintf(why, sizeof(why), "%.*s", (int)MIN(m.len, sizeof(why) - 1),
                         (const char *)m.data);
                note_agent_end(a, 0, why);
                return 0;
        default:
                return err_set(err, EPROTO, "message out of turn: TUNNEL of kind %u", m.kind);
        }
}

enum prepared_state prepared_state(const struct prepared_agents *p, size_t i)
{
        const struct prepared_agent *a = p->v[i].spare;

        if (a && a->state == AGENT_READY)
                return p->nodes.silent(p->nodes.ctx, i) ? PREPARED_SILENT : PREPARED_READY;
        return !p->nodes.out(p->nodes.ctx, i) || p->v[i].tries >= TRIES ? PREPARED_NEVER
                                                                        : PREPARED_NOT_YET;
}

int prepared_take(struct prepared_agents *p, size_t i, uint64_t run)
{
        struct prepared_agent *a = p->v[i].spare;
        CLEANUP(buf_finish) struct buf first = BUF_INIT;
        int fds[2], r = fd_pair(fds);

        if (r < 0)
                return r;
        uv_pipe_init(p->loop, &a->pipe, 0);
        a->pipe.data = a;
        a->has_pipe = true;
        a->run = run;
        p->open++;
        p->n_taken++;
        p->v[i].spare = NULL;
        p->v[i].tries = 0;
        a->state = AGENT_TAKEN;
        r = fd_set_nonblock(fds[0]);
        if (r == 0)
                r = uv_pipe_open(&a->pipe, fds[0]);
        if (r < 0) {
                fd_close(fds[0]);
                fd_close(fds[1]);
                prune_agent(a);
                return r;
        }
        /* The HELLO must have the time at which the run reads it. */
        a->hello.mono_ns = (uint64_t)(clock_ns() + a->clock.offset_ns);
        buf_appends(&first, MSG_MAGIC);
        hello_encode(&first, &a->hello);
        buf_append(&first, buf_data(&a->in), buf_len(&a->in));
        buf_finish(&a->in);
        pass_to_run(a, buf_data(&first), buf_len(&first));
        read_run(a);
        return fds[1];
}

void prepared_send(struct prepared_agents *p, size_t i, const struct buf *frames)
{
        if (p->v[i].spare && p->v[i].spare->state == AGENT_READY)
                send_frames(p->v[i].spare, frames);
}

void prepared_lost(struct prepared_agents *p, size_t i)
{
        struct prepared_agent *next;

        for (struct prepared_agent *a = p->agents; a; a = next) {
                next = a->next;
                if (a->node == i)
                        end_agent(a);
        }
        if (!p->closing)
                p->ops->changed(p->ctx, i);
}

size_t prepared_taken(const struct prepared_agents *p)
{
        return p->n_taken;
}

struct prepared_agents *prepared_create(uv_loop_t *loop, const struct hold_nodes *nodes, size_t n,
                                        const struct prepared_ops *ops, void *ctx)
{
        struct prepared_agents *p = xcalloc(1, sizeof(*p));

        *p = (struct prepared_agents){ .loop = loop,
                                       .nodes = *nodes,
                                       .ops = ops,
                                       .ctx = ctx,
                                       .v = xcalloc(n, sizeof(*p->v)),
                                       .n = n,
                                       .open = 1 };
        return p;
}

void prepared_close(struct prepared_agents *p)
{
        p->closing = true;
        for (struct prepared_agent *a = p->agents; a; a = a->next)
                prune_agent(a);
}

void prepared_destroy(struct prepared_agents *p)
{
        while (p->agents)
                drop_agent(p->agents);
        unref_prepared(p);
}
