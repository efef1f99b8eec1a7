/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/node.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/fd.h"
#include "base/strv.h"
#include "head/model/events.h"

enum {
        KEEP = 256,     /* memory that an empty buffer keeps: enough for a ping */
        REST = 4 << 10, /* read at once behind the beginning of a message, at least */
};

/* Where the loop's reads of all nodes land. Messages come whole as a rule, so that of thousands of
 * nodes only the few in the middle of one have memory of their own. */
static struct buf room;

/* --- the state machine ------------------------------------------------------------------------ */

struct cell {
        const char *name;
        enum node_state next;
};

#define GO(state)                                                                                  \
        {                                                                                          \
#state, NODE_##state                                                               \
        }
#define STAY(state)                                                                                \
        {                                                                                          \
                "ignore", NODE_##state                                                             \
        }

/* What comes too late or twice is ignored, never an error: links and loops deliver late news. */
static const struct cell cells[NODE_STATES][NODE_EVENTS] = {
        [NODE_NEW] = { [NODE_EV_CONNECT] = GO(CONNECTING),
                       [NODE_EV_OPENED] = STAY(NEW),
                       [NODE_EV_HELLO] = STAY(NEW),
                       [NODE_EV_LAUNCH] = STAY(NEW),
                       [NODE_EV_DONE] = STAY(NEW),
                       [NODE_EV_AGAIN] = STAY(NEW),
                       [NODE_EV_BROKEN] = GO(FAILED) },
        [NODE_CONNECTING] = { [NODE_EV_CONNECT] = STAY(CONNECTING),
                              [NODE_EV_OPENED] = GO(GREETING),
                              [NODE_EV_HELLO] = STAY(CONNECTING),
                              [NODE_EV_LAUNCH] = STAY(CONNECTING),
                              [NODE_EV_DONE] = STAY(CONNECTING),
                              [NODE_EV_AGAIN] = STAY(CONNECTING),
                              [NODE_EV_BROKEN] = GO(FAILED) },
        [NODE_GREETING] = { [NODE_EV_CONNECT] = STAY(GREETING),
                            [NODE_EV_OPENED] = STAY(GREETING),
                            [NODE_EV_HELLO] = GO(READY),
                            [NODE_EV_LAUNCH] = STAY(GREETING),
                            [NODE_EV_DONE] = STAY(GREETING),
                            [NODE_EV_AGAIN] = STAY(GREETING),
                            [NODE_EV_BROKEN] = GO(FAILED) },
        [NODE_READY] = { [NODE_EV_CONNECT] = STAY(READY),
                         [NODE_EV_OPENED] = STAY(READY),
                         [NODE_EV_HELLO] = STAY(READY),
                         [NODE_EV_LAUNCH] = GO(RUNNING),
                         [NODE_EV_DONE] = STAY(READY),
                         [NODE_EV_AGAIN] = STAY(READY),
                         [NODE_EV_BROKEN] = GO(FAILED) },
        [NODE_RUNNING] = { [NODE_EV_CONNECT] = STAY(RUNNING),
                           [NODE_EV_OPENED] = STAY(RUNNING),
                           [NODE_EV_HELLO] = STAY(RUNNING),
                           [NODE_EV_LAUNCH] = STAY(RUNNING),
                           [NODE_EV_DONE] = GO(GONE),
                           [NODE_EV_AGAIN] = STAY(RUNNING),
                           [NODE_EV_BROKEN] = GO(FAILED) },
        [NODE_GONE] = { [NODE_EV_CONNECT] = STAY(GONE),
                        [NODE_EV_OPENED] = STAY(GONE),
                        [NODE_EV_HELLO] = STAY(GONE),
                        [NODE_EV_LAUNCH] = STAY(GONE),
                        [NODE_EV_DONE] = STAY(GONE),
                        [NODE_EV_AGAIN] = GO(READY),
                        [NODE_EV_BROKEN] = STAY(GONE) },
        [NODE_FAILED] = { [NODE_EV_CONNECT] = STAY(FAILED),
                          [NODE_EV_OPENED] = STAY(FAILED),
                          [NODE_EV_HELLO] = STAY(FAILED),
                          [NODE_EV_LAUNCH] = STAY(FAILED),
                          [NODE_EV_DONE] = STAY(FAILED),
                          [NODE_EV_AGAIN] = STAY(FAILED),
                          [NODE_EV_BROKEN] = STAY(FAILED) },
};

const char *node_cell(enum node_state s, enum node_event e)
{
        return cells[s][e].name;
}

/* True if the state changed. */
static bool step(struct node *n, enum node_event e)
{
        enum node_state was = n->state;

        n->state = cells[was][e].next;
        if (n->state == was)
                return false;
        if (!n->closing)
                n->ops->changed(n->ctx, n, was);
        return true;
}

static void remember(struct node *n, const struct link_failure *why)
{
        struct link_failure was = *why; /* may be the one that is overwritten */

        if (!n->failure)
                n->failure = xcalloc(1, sizeof(*n->failure));
        *n->failure = was;
}

static void broken(struct node *n, const struct link_failure *why)
{
        if (n->state == NODE_FAILED || n->state == NODE_GONE)
                return;
        remember(n, why);
        step(n, NODE_EV_BROKEN);
}

/* A GONE node may end; those that it carried may not. */
static void tell_left(struct node *n)
{
        if (n->state == NODE_GONE && !n->closing && n->ops->left)
                n->ops->left(n->ctx, n);
}

void node_break(struct node *n, enum link_cause cause, const char *fmt, ...)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = cause };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(why.fact, sizeof(why.fact), fmt, ap);
        va_end(ap);
        if (n->state == NODE_GONE && !n->ended) {
                remember(n, &why);
                n->ended = true;
                tell_left(n);
        }
        broken(n, &why);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* What one large message needed must not stay for the small ones that follow. */
static void trim(struct buf *b)
{
        if (buf_len(b) == 0 && b->cap > KEEP)
                buf_finish(b);
}

static void flushed(uv_write_t *req, int status)
{
        struct node *n = req->data;

        n->writing = false;
        n->handles--;
        buf_clear(&n->flying);
        trim(&n->flying);
        if (n->closing)
                return;
        if (status < 0)
                node_break(n, LINK_ENDED, "cannot write to the agent: %s", uv_strerror(status));
        else
                node_flush(n);
}

static uv_buf_t piece_of(const struct buf *b)
{
        return uv_buf_init((char *)(b->mem + b->start), (unsigned)buf_len(b));
}

/* What the pipe takes at once: as a rule everything, and then the loop need not call back. An error
 * is left to write_later(), whose callback nobody has called from inside something else. */
static void write_now(struct node *n)
{
        uv_buf_t piece = piece_of(&n->out);
        int r = uv_try_write((uv_stream_t *)&n->pipe, &piece, 1);

        if (r > 0)
                buf_consume(&n->out, (size_t)r);
        trim(&n->out);
}

/* One write at a time; what comes meanwhile goes out together. */
static void write_later(struct node *n)
{
        struct buf empty = n->flying;
        uv_buf_t piece;

        n->flying = n->out;
        n->out = empty;
        piece = piece_of(&n->flying);
        n->write.data = n;
        if (uv_write(&n->write, (uv_stream_t *)&n->pipe, &piece, 1, flushed) == 0) {
                n->writing = true;
                n->handles++;
        }
}

void node_flush(struct node *n)
{
        if (n->tunnelled && !n->closing) {
                link_send(n->link, &n->out);
                trim(&n->out);
                return;
        }
        if (n->writing || n->closing || !n->piped)
                return;
        if (buf_failed(&n->out)) {
                node_break(n, LINK_OTHER, "out of memory for what is to be sent there");
                return;
        }
        if (buf_len(&n->out))
                write_now(n);
        if (buf_len(&n->out))
                write_later(n);
}

bool node_unsent(const struct node *n)
{
        uv_os_fd_t fd;
        int waiting = 0;

        if (!n->piped || n->closing || uv_fileno((const uv_handle_t *)&n->pipe, &fd) != 0)
                return false;
        return buf_len(&n->out) || n->writing || (ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting);
}

void node_out_long(struct node *n, const void *p, size_t len)
{
        uv_buf_t pieces[] = { piece_of(&n->out), uv_buf_init((char *)(uintptr_t)p, (unsigned)len) };
        size_t queued = pieces[0].len, taken = 0;
        int r = 0;

        if (!n->writing && !n->closing && n->piped && !buf_failed(&n->out))
                r = uv_try_write((uv_stream_t *)&n->pipe, pieces, 2);
        if (r > 0) {
                buf_consume(&n->out, MIN(queued, (size_t)r));
                taken = (size_t)r - MIN(queued, (size_t)r);
        }
        buf_append(&n->out, (const char *)p + taken, len - taken);
        trim(&n->out);
}

void node_common(struct node *n, const struct buf *frame)
{
        if (n->tunnelled && !n->closing && !buf_len(&n->out))
                link_common(n->link, buf_len(frame));
        else
                buf_append(&n->out, buf_data(frame), buf_len(frame));
}

struct buf *node_out(struct node *n)
{
        return &n->out;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void greeted(struct node *n, const struct frame *f)
{
        struct error err;

        if (f->type != MSG_HELLO || hello_decode(&n->hello, f, &err) < 0) {
                node_break(n, LINK_OTHER, "the agent's greeting is malformed");
                return;
        }
        if (n->hello.version != MSG_VERSION) {
                n->version_differs = true;
                node_break(n, LINK_OTHER, "its agent speaks protocol %u, this hnlaunch %d",
                           n->hello.version, MSG_VERSION);
                return;
        }
        n->clock.offset_ns = (int64_t)n->hello.mono_ns - clock_ns();
        uv_timer_stop(&n->deadline);
        step(n, NODE_EV_HELLO);
}

static void ponged(struct node *n, const struct frame *f)
{
        struct error err;
        struct ping p;

        if (ping_decode(&p, f, &err) == 0)
                clock_offset_pong(&n->clock, &p, clock_ns());
}

static void frame_arrived(struct node *n, const struct frame *f)
{
        if (n->state == NODE_GREETING)
                greeted(n, f);
        else if (f->type == MSG_PONG)
                ponged(n, f);
        else if (f->type == MSG_GONE)
                step(n, NODE_EV_DONE);
        else
                n->ops->message(n->ctx, n, f);
}

static void frames_arrived(struct node *n)
{
        struct error err;
        struct frame f;
        int r = 0;

        while (!n->closing && n->state != NODE_FAILED && (r = frame_peek(&n->in, &f, &err)) > 0) {
                frame_arrived(n, &f);
                frame_consume(&n->in, &f);
        }
        if (r < 0)
                node_break(n, LINK_OTHER, "the agent sent %s", err.text);
}

static void bootstrapping(struct node *n)
{
        struct error err = { 0 };

        for (;;) {
                switch (bootstrap_feed(&n->boot, n->agent_binaries, &n->in, &err)) {
                case BOOTSTRAP_MORE:
                        return;
                case BOOTSTRAP_UPLOAD:
                        n->uploaded = true;
                        if (n->tunnelled && !strcmp(n->boot.sent->arch, n->parent->hello.arch))
                                link_upload(n->link);
                        else
                                buf_append(&n->out, n->boot.sent->data, n->boot.sent->len);
                        n->ops->uploading(n->ctx, n);
                        node_flush(n);
                        break;
                case BOOTSTRAP_GREETED:
                        bootstrap_finish(&n->boot);
                        n->boot.greeted = true;
                        return;
                case -ENOEXEC:
                        n->no_agent = true;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                default:
                        n->cannot_run = true;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                }
        }
}

/* The rest of a message follows its beginning, everything else comes into the common room. */
static void give_room(uv_handle_t *h, size_t size, uv_buf_t *ret)
{
        struct node *n = h->data;
        struct buf *to = buf_len(&n->in) ? &n->in : &room;
        size_t want = to == &room ? size : MAX(frame_missing(&n->in), (size_t)REST);
        char *mem = buf_reserve(to, want);

        if (!mem)
                buf_finish(&room); /* for the others */
        *ret = uv_buf_init(mem, mem ? (unsigned)want : 0);
}

/* The link ended before HELLO: a refused login, if it was ssh's own, else a login without an agent.
 */
static void greeting_failed(struct node *n)
{
        struct link_failure why = *n->failure;
        size_t tail = MIN(buf_len(&n->boot.noise), sizeof(why.evidence) - 1);

        n->cannot_run = why.cause == LINK_ENDED;
        if (n->cannot_run && tail && !*why.evidence)
                memcpy(why.evidence, buf_data(&n->boot.noise) + buf_len(&n->boot.noise) - tail,
                       tail);
        broken(n, &why);
}

/* The link's own end comes with a better reason than EOF, before it or after: a greeting waits for
 * it, a running node does not. */
static void stream_ended(struct node *n, ssize_t status)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };

        n->ended = true;
        if (n->state == NODE_GREETING) {
                if (n->failure)
                        greeting_failed(n);
                return;
        }
        tell_left(n);
        if (n->failure)
                why = *n->failure;
        else
                snprintf(why.fact, sizeof(why.fact), "connection lost (%s)",
                         status == UV_EOF ? "end of stream" : uv_strerror((int)status));
        broken(n, &why);
}

static void understand(struct node *n)
{
        if (!n->boot.greeted)
                bootstrapping(n);
        if (n->boot.greeted)
                frames_arrived(n);
}

/* What came into the common room; a message that is not whole moves out. */
static void understand_room(struct node *n, size_t got)
{
        n->in = room;
        room = (struct buf)BUF_INIT;
        buf_advance(&n->in, got);
        understand(n);
        room = n->in;
        n->in = (struct buf)BUF_INIT;
        buf_append(&n->in, buf_data(&room), buf_len(&room));
        buf_clear(&room);
}

static void bytes_arrived(uv_stream_t *s, ssize_t got, const uv_buf_t *b UNUSED)
{
        struct node *n = s->data;

        if (got < 0) {
                uv_read_stop(s);
                stream_ended(n, got);
                return;
        }
        if (got == 0)
                return;
        n->heard_ns = clock_ns();
        if (buf_len(&n->in) == 0) {
                understand_room(n, (size_t)got);
                return;
        }
        buf_advance(&n->in, (size_t)got);
        understand(n);
        if (buf_len(&n->in) == 0)
                buf_finish(&n->in);
}

static void too_late(uv_timer_t *t)
{
        struct node *n = t->data;

        if (n->state == NODE_CONNECTING) {
                node_break(n, LINK_TIMED_OUT, "its ssh brought no answer in time");
                return;
        }
        n->cannot_run = true;
        node_break(n, LINK_TIMED_OUT, "logged in, but the agent did not answer in time");
}

/* --- the link --------------------------------------------------------------------------------- */

static void link_opened(void *ctx, int fd)
{
        struct node *n = ctx;
        int r;

        if (fd < 0 && n->state == NODE_CONNECTING) {
                n->tunnelled = true;
                uv_timer_start(&n->deadline, too_late, (uint64_t)n->greet_ms, 0);
                step(n, NODE_EV_OPENED);
                return;
        }
        if (n->state != NODE_CONNECTING || uv_pipe_init(n->loop, &n->pipe, 0) != 0) {
                fd_close(fd);
                return;
        }
        n->handles++;
        n->pipe.data = n;
        n->piped = true;
        r = uv_pipe_open(&n->pipe, fd);
        if (r < 0)
                fd_close(fd);
        else
                r = uv_read_start((uv_stream_t *)&n->pipe, give_room, bytes_arrived);
        if (r < 0) {
                node_break(n, LINK_OTHER, "cannot read from the agent: %s", uv_strerror(r));
                return;
        }
        uv_timer_start(&n->deadline, too_late, (uint64_t)n->greet_ms, 0);
        step(n, NODE_EV_OPENED);
}

static void link_broken(void *ctx, const struct link_failure *why)
{
        broken(ctx, why);
}

/* The bytes that the agent sent before it ended are still in the stream: EOF decides there. */
static void link_ended(void *ctx, const struct link_failure *why)
{
        struct node *n = ctx;

        if (n->tunnelled)
                n->ended = true; /* nothing comes behind it */
        if (n->state == NODE_FAILED)
                return;
        remember(n, why);
        if (n->state == NODE_GREETING && n->ended)
                greeting_failed(n);
        else if (!n->piped || n->ended)
                broken(n, why);
        if (n->tunnelled)
                tell_left(n);
}

static void link_received(void *ctx, const void *data, size_t len)
{
        struct node *n = ctx;

        if (n->closing || n->state == NODE_FAILED)
                return;
        if (buf_append(&n->in, data, len) < 0) {
                node_break(n, LINK_OTHER, "out of memory for what it says");
                return;
        }
        n->heard_ns = clock_ns();
        understand(n);
        if (buf_len(&n->in) == 0)
                buf_finish(&n->in);
}

static void link_room(void *ctx)
{
        node_flush(ctx);
}

static void link_noise(void *ctx, const char *text, size_t len)
{
        struct node *n = ctx;

        if (!n->closing)
                n->ops->noise(n->ctx, n, text, len);
}

static void link_stored(void *ctx, const char *text)
{
        const struct node *n = ctx;

        if (!n->closing && n->ops->stored)
                n->ops->stored(n->ctx, text);
}

static void link_phase(void *ctx, enum link_phase phase)
{
        struct node *n = ctx;

        if (n->closing)
                return;
        /* Links of this process time out by themselves, another node's ssh may not. */
        if (n->parent && n->state == NODE_CONNECTING)
                uv_timer_start(&n->deadline, too_late, (uint64_t)n->greet_ms, 0);
        n->ops->phase(n->ctx, n, phase);
}

static const struct link_callbacks link_cb = {
        .opened = link_opened,
        .failed = link_broken,
        .ended = link_ended,
        .noise = link_noise,
        .stored = link_stored,
        .phase = link_phase,
        .received = link_received,
        .room = link_room,
};

/* --- life cycle ------------------------------------------------------------------------------- */

void node_init(struct node *n, uv_loop_t *loop, int index, const struct host *host,
               const struct agent_binaries *agent_binaries, const struct node_ops *ops, void *ctx)
{
        n->loop = loop;
        n->index = index;
        n->host = host;
        n->agent_binaries = agent_binaries;
        n->ops = ops;
        n->ctx = ctx;
        n->clock = (struct clock_offset)FAR_CLOCK_INIT;
        uv_timer_init(loop, &n->deadline);
        n->deadline.data = n;
        n->handles = 1;
}

void node_connect(struct node *n, struct transport *t, const char *user, int64_t greet_ms)
{
        struct link_target to = {
                .host = n->host->name,
                .user = n->host->user ? n->host->user : user,
                .port = n->host->port,
                .via = n->parent,
                .number = (size_t)n->index,
                .has_children = n->has_children,
        };
        struct error err = { 0 };

        if (!step(n, NODE_EV_CONNECT))
                return;
        n->greet_ms = greet_ms;
        n->link = link_open(t, &to, &link_cb, n, &err);
        if (!n->link)
                node_break(n, LINK_SPAWN, "%s", err.text);
}

void node_renew(struct node *n)
{
        link_close(n->link);
        n->link = NULL;
        node_finish(n);
        n->boot = (struct bootstrap)BOOTSTRAP_INIT;
        n->uploaded = n->cannot_run = n->malformed = n->ended = n->tunnelled = false;
        n->clock = (struct clock_offset)FAR_CLOCK_INIT;
        n->parent = NULL;
        n->has_children = false;
        n->state = NODE_NEW;
}

void node_again(struct node *n)
{
        if (!step(n, NODE_EV_AGAIN))
                return;
        n->heard_ns = clock_ns();
        if (n->ended)
                node_break(n,
                           n->failure && n->failure->cause == LINK_PARENT ? LINK_PARENT
                                                                          : LINK_ENDED,
                           "its agent left between two attempts");
}

void node_launched(struct node *n)
{
        step(n, NODE_EV_LAUNCH);
}

static void handle_closed(uv_handle_t *h)
{
        struct node *n = h->data;

        n->handles--;
}

void node_close(struct node *n)
{
        if (n->closing)
                return;
        n->closing = true;
        if (n->piped)
                uv_close((uv_handle_t *)&n->pipe, handle_closed);
        uv_close((uv_handle_t *)&n->deadline, handle_closed);
        link_close(n->link);
        n->link = NULL;
}

bool node_closed(const struct node *n)
{
        return n->closing && !n->handles;
}

void node_finish(struct node *n)
{
        hello_finish(&n->hello);
        bootstrap_finish(&n->boot);
        buf_finish(&n->in);
        buf_finish(&n->out);
        buf_finish(&n->flying);
        free(n->failure);
        n->failure = NULL;
}
