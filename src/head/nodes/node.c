/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node works. Three sources of events drive it, all on the main loop: the link's callbacks
 * (on_link_*), reads and writes of the link's descriptor (on_node_*), and one deadline timer. Each
 * ends in step_node(), which looks the next state up in a table and reports the change.
 *
 * Bytes from the far end collect in io->in. Until the agent has greeted, the bytes belong to the
 * bootstrap, afterwards to frames: HELLO and PONG are handled here, all others are passed to
 * ops->message(). Nothing of a node that was given up is read any more. Bytes for the far end
 * collect in n->out; node_flush() writes as much as the pipe takes at once and leaves the rest to
 * libuv (io->in_flight, a single write). A link through another node's agent has no descriptor:
 * transport_ops.send() and on_link_received() take the place of the pipe.
 *
 * The end of a link is seen twice, as EOF and as the transport's report with a reason, in either
 * order; a greeting node waits for the reason.
 */
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
#include "base/memory.h"
#include "head/model/events.h"

enum {
        KEEP = 256,     /* memory kept by an empty buffer: enough for a ping */
        REST = 4 << 10, /* read at once behind the beginning of a message, at least */
};

enum node_stream {
        STREAM_NONE,
        STREAM_PIPE,   /* the link's descriptor */
        STREAM_TUNNEL, /* transport_ops.send() and on_link_received() */
};

struct node_io {
        uv_loop_t *loop;
        const struct agent_binaries *agent_binaries;
        const struct node_ops *ops;
        void *ctx;
        struct link *link;
        struct bootstrap boot;
        int64_t greet_ms;
        uv_timer_t deadline;
        enum node_stream stream;
        uv_pipe_t pipe;
        uv_write_t write;
        bool writing; /* @in_flight is with libuv */
        bool closing;
        int handles; /* to be closed before the memory may go */
        struct buf in, in_flight;
};

/* Where the loop's reads of all nodes land. As a rule messages arrive whole, so of thousands of
 * nodes only the few in the middle of a message have an input buffer of their own. */
static struct buf shared_in;

/* --- the state machine ------------------------------------------------------------------------ */

/* The next state plus one; 0 = the event changes nothing there. Late and repeated events are
 * ignored, never an error: links and loops may deliver both. */
#define TO(state) (NODE_##state + 1)

static const unsigned char cells[NODE_STATES][NODE_EVENTS] = {
        [NODE_NEW] = { [NODE_EV_CONNECT] = TO(CONNECTING), [NODE_EV_BROKEN] = TO(FAILED) },
        [NODE_CONNECTING] = { [NODE_EV_OPENED] = TO(GREETING), [NODE_EV_BROKEN] = TO(FAILED) },
        [NODE_GREETING] = { [NODE_EV_HELLO] = TO(READY), [NODE_EV_BROKEN] = TO(FAILED) },
        [NODE_READY] = { [NODE_EV_LAUNCH] = TO(RUNNING), [NODE_EV_BROKEN] = TO(FAILED) },
        [NODE_RUNNING] = { [NODE_EV_DONE] = TO(GONE), [NODE_EV_BROKEN] = TO(FAILED) },
        [NODE_GONE] = { [NODE_EV_AGAIN] = TO(READY) },
};

enum node_state node_next_state(enum node_state s, enum node_event e)
{
        return cells[s][e] ? (enum node_state)(cells[s][e] - 1) : s;
}

/* Returns whether the state changed. */
static bool step_node(struct node *n, enum node_event e)
{
        enum node_state was = n->state;

        n->state = node_next_state(was, e);
        if (n->state == was)
                return false;
        if (!n->io->closing)
                n->io->ops->changed(n->io->ctx, n, was);
        return true;
}

static void keep_failure(struct node *n, const struct link_failure *why)
{
        struct link_failure copy = *why; /* @why may be n->failure */

        if (!n->failure)
                n->failure = xcalloc(1, sizeof(*n->failure));
        *n->failure = copy;
}

static void fail_node(struct node *n, const struct link_failure *why)
{
        if (n->state == NODE_FAILED || n->state == NODE_GONE)
                return;
        keep_failure(n, why);
        step_node(n, NODE_EV_BROKEN);
}

/* Tells the owner that the agent of a GONE node has exited: children in the tree may need it. */
static void report_node_exit(struct node *n)
{
        if (n->state == NODE_GONE && !n->io->closing && n->io->ops->left)
                n->io->ops->left(n->io->ctx, n);
}

void node_break(struct node *n, enum link_cause cause, const char *fmt, ...)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = cause };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(why.fact, sizeof(why.fact), fmt, ap);
        va_end(ap);
        if (n->state == NODE_GONE && !n->ended) {
                keep_failure(n, &why);
                n->ended = true;
                report_node_exit(n);
        }
        fail_node(n, &why);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Frees the memory of a large message, which the following small messages do not need. */
static void trim_node_buffer(struct buf *b)
{
        if (buf_len(b) == 0 && b->cap > KEEP)
                buf_finish(b);
}

static size_t count_unread(const struct node *n)
{
        const struct node_io *io = n->io;

        return buf_len(&n->out) +
               (io->writing ? uv_stream_get_write_queue_size((const uv_stream_t *)&io->pipe) : 0);
}

static void on_node_overrun(uv_timer_t *t)
{
        struct node *n = t->data;

        node_break(n, LINK_OTHER, "the agent does not read: %zu MiB of messages wait for it",
                   count_unread(n) >> 20);
        buf_finish(&n->out);
}

bool node_has_room(struct node *n, size_t len)
{
        if (count_unread(n) + len <= NODE_UNREAD_MAX + n->answers_max)
                return true;
        uv_timer_start(&n->io->deadline, on_node_overrun, 0, 0);
        return false;
}

static void on_node_written(uv_write_t *req, int status)
{
        struct node *n = req->data;
        struct node_io *io = n->io;

        io->writing = false;
        io->handles--;
        buf_clear(&io->in_flight);
        trim_node_buffer(&io->in_flight);
        if (io->closing)
                return;
        if (status < 0)
                node_break(n, LINK_ENDED, "cannot write to the agent: %s", uv_strerror(status));
        else
                node_flush(n);
}

void node_flush(struct node *n)
{
        struct node_io *io = n->io;
        struct buf empty = io->in_flight;
        uv_buf_t piece;
        int r;

        if (!node_has_room(n, 0))
                return;
        if (io->stream == STREAM_TUNNEL && !io->closing) {
                io->link->transport->ops->send(io->link, &n->out);
                trim_node_buffer(&n->out);
                return;
        }
        if (io->writing || io->closing || io->stream != STREAM_PIPE)
                return;
        if (buf_failed(&n->out)) {
                node_break(n, LINK_OTHER, "out of memory for messages to the agent");
                return;
        }
        if (!buf_len(&n->out))
                return;
        /* As a rule the pipe takes everything at once. An error is left to uv_write(), to be
         * reported from the loop and not inside the caller's function. */
        piece = uv_buf_init((char *)n->out.mem + n->out.start, (unsigned)buf_len(&n->out));
        r = uv_try_write((uv_stream_t *)&io->pipe, &piece, 1);
        if (r > 0)
                buf_consume(&n->out, (size_t)r);
        trim_node_buffer(&n->out);
        if (!buf_len(&n->out))
                return;
        /* Hands the rest to libuv; frames added meanwhile form the next write. */
        io->in_flight = n->out;
        n->out = empty;
        piece = uv_buf_init((char *)io->in_flight.mem + io->in_flight.start,
                            (unsigned)buf_len(&io->in_flight));
        io->write.data = n;
        if (uv_write(&io->write, (uv_stream_t *)&io->pipe, &piece, 1, on_node_written) == 0) {
                io->writing = true;
                io->handles++;
        }
}

bool node_unsent(const struct node *n)
{
        struct node_io *io = n->io;
        uv_os_fd_t fd;
        int waiting = 0;

        if (io->stream != STREAM_PIPE || io->closing ||
            uv_fileno((const uv_handle_t *)&io->pipe, &fd) != 0)
                return false;
        return buf_len(&n->out) || io->writing || (ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting);
}

void node_out_long(struct node *n, const void *p, size_t len)
{
        struct node_io *io = n->io;
        uv_buf_t pieces[] = {
                uv_buf_init((char *)n->out.mem + n->out.start, (unsigned)buf_len(&n->out)),
                uv_buf_init((char *)(uintptr_t)p, (unsigned)len),
        };
        size_t queued = pieces[0].len, taken = 0;
        int r = 0;

        if (!io->writing && !io->closing && io->stream == STREAM_PIPE && !buf_failed(&n->out))
                r = uv_try_write((uv_stream_t *)&io->pipe, pieces, 2);
        if (r > 0) {
                buf_consume(&n->out, MIN(queued, (size_t)r));
                taken = (size_t)r - MIN(queued, (size_t)r);
        }
        buf_append(&n->out, (const char *)p + taken, len - taken);
        trim_node_buffer(&n->out);
}

void node_common(struct node *n, const struct buf *frame)
{
        struct node_io *io = n->io;

        if (io->stream == STREAM_TUNNEL && !io->closing && !buf_len(&n->out))
                io->link->transport->ops->common(io->link, buf_len(frame));
        else
                buf_append(&n->out, buf_data(frame), buf_len(frame));
}

/* --- reading ---------------------------------------------------------------------------------- */

static void take_node_hello(struct node *n, const struct frame *f)
{
        struct error err;

        if (f->type != MSG_HELLO || hello_decode(&n->hello, f, &err) < 0) {
                node_break(n, LINK_OTHER, "malformed greeting from the agent");
                return;
        }
        if (n->hello.version != MSG_VERSION) {
                n->refusal = NODE_WRONG_VERSION;
                node_break(n, LINK_OTHER, "the agent has protocol version %u, this hnlaunch %d",
                           n->hello.version, MSG_VERSION);
                return;
        }
        n->clock.offset_ns = (int64_t)(n->hello.mono_ns - (uint64_t)clock_ns());
        uv_timer_stop(&n->io->deadline);
        step_node(n, NODE_EV_HELLO);
}

static void continue_bootstrap(struct node *n)
{
        struct node_io *io = n->io;
        struct error err = { 0 };

        for (;;) {
                switch (bootstrap_feed(&io->boot, io->agent_binaries, &io->in, &err)) {
                case BOOTSTRAP_MORE:
                        return;
                case BOOTSTRAP_UPLOAD:
                        n->uploaded = true;
                        if (io->stream == STREAM_TUNNEL &&
                            !strcmp(io->boot.sent->arch, n->parent->hello.arch))
                                io->link->transport->ops->upload(io->link);
                        else
                                buf_append(&n->out, io->boot.sent->data, io->boot.sent->len);
                        io->ops->uploading(io->ctx, n);
                        node_flush(n);
                        break;
                case BOOTSTRAP_GREETED:
                        buf_finish(&io->boot.noise);
                        io->boot.greeted = true;
                        return;
                case -ENOEXEC:
                        n->refusal = NODE_NO_AGENT;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                default:
                        n->refusal = NODE_CANNOT_RUN;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                }
        }
}

/* Reads the rest of a message behind the part already there, all else into the shared buffer. */
static void on_node_alloc(uv_handle_t *h, size_t size, uv_buf_t *ret)
{
        struct node *n = h->data;
        struct node_io *io = n->io;
        struct buf *to = buf_len(&io->in) ? &io->in : &shared_in;
        size_t want = to == &shared_in ? size : MAX(frame_missing(&io->in), (size_t)REST);
        char *mem = buf_reserve(to, want);

        if (!mem)
                buf_finish(&shared_in); /* memory for the other nodes */
        *ret = uv_buf_init(mem, mem ? (unsigned)want : 0);
}

/* Fails a node whose link ended before HELLO: no agent started there, or ssh itself failed. */
static void fail_greeting(struct node *n)
{
        struct node_io *io = n->io;
        struct link_failure why = *n->failure;
        size_t tail = MIN(buf_len(&io->boot.noise), sizeof(why.evidence) - 1);

        n->refusal = why.cause == LINK_ENDED ? NODE_CANNOT_RUN : NODE_NOT_REFUSED;
        if (n->refusal && tail && !*why.evidence)
                memcpy(why.evidence, buf_data(&io->boot.noise) + buf_len(&io->boot.noise) - tail,
                       tail);
        fail_node(n, &why);
}

/* Handles EOF. The transport reports the end with a better reason, earlier or later: a greeting
 * node waits for that report, a running node does not. */
static void end_node_stream(struct node *n, ssize_t status)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };
        bool was_ended = n->ended;

        n->ended = true;
        if (n->state == NODE_GREETING) {
                if (n->failure)
                        fail_greeting(n);
                return;
        }
        if (!was_ended)
                report_node_exit(n);
        if (n->failure)
                why = *n->failure;
        else
                snprintf(why.fact, sizeof(why.fact), "connection lost (%s)",
                         status == UV_EOF ? "end of stream" : uv_strerror((int)status));
        fail_node(n, &why);
}

/* Takes a message after HELLO. 0, or -EPROTO with @err: malformed, or out of turn. */
static int take_node_message(struct node *n, const struct frame *f, struct error *err)
{
        struct ping pong;
        int r;

        if (f->type == MSG_PONG) {
                r = ping_decode(&pong, f, err);
                if (r == 0 && pong.head_ns > (uint64_t)clock_ns())
                        return err_set(err, EPROTO, "message out of turn: PONG without a PING");
                if (r == 0)
                        clock_offset_pong(&n->clock, &pong, clock_ns());
                return r;
        }
        r = n->io->ops->message(n->io->ctx, n, f, err);
        if (r >= 0 && f->type == MSG_GONE)
                step_node(n, NODE_EV_DONE);
        return r;
}

/* Whether nothing more is to be heard from the node. */
static bool is_given_up(const struct node *n)
{
        return n->state == NODE_FAILED || n->ended;
}

/* Handles the complete messages in io->in. */
static void take_node_input(struct node *n)
{
        struct node_io *io = n->io;
        struct error err;
        struct frame f;
        int r = 0;

        if (!io->boot.greeted)
                continue_bootstrap(n);
        while (io->boot.greeted && !io->closing && !is_given_up(n) &&
               (r = frame_peek(&io->in, &f, &err)) > 0) {
                if (n->state == NODE_GREETING) {
                        take_node_hello(n, &f);
                } else if (take_node_message(n, &f, &err) < 0) {
                        n->refusal = NODE_MALFORMED;
                        node_break(n, LINK_OTHER, "the agent sent a %s", err.text);
                }
                frame_consume(&io->in, &f);
        }
        if (r < 0)
                node_break(n, LINK_OTHER, "the agent sent %s", err.text);
}

static void on_node_read(uv_stream_t *s, ssize_t got, const uv_buf_t *b UNUSED)
{
        struct node *n = s->data;
        struct node_io *io = n->io;
        bool shared = buf_len(&io->in) == 0;

        if (got < 0) {
                uv_read_stop(s);
                end_node_stream(n, got);
                return;
        }
        if (got == 0)
                return;
        n->heard_ns = clock_ns();
        if (shared) {
                io->in = shared_in;
                shared_in = (struct buf)BUF_INIT;
        }
        buf_advance(&io->in, (size_t)got);
        take_node_input(n);
        if (shared) { /* an incomplete message moves to the node's own buffer */
                shared_in = io->in;
                io->in = (struct buf)BUF_INIT;
                buf_append(&io->in, buf_data(&shared_in), buf_len(&shared_in));
                buf_clear(&shared_in);
        } else if (buf_len(&io->in) == 0) {
                buf_finish(&io->in);
        }
        if (is_given_up(n)) {
                uv_read_stop(s);
                buf_finish(&io->in);
        }
}

static void on_node_deadline(uv_timer_t *t)
{
        struct node *n = t->data;

        if (n->state == NODE_CONNECTING) {
                node_break(n, LINK_TIMED_OUT, "ssh timed out");
                return;
        }
        n->refusal = NODE_CANNOT_RUN;
        node_break(n, LINK_TIMED_OUT, "logged in, but the agent did not answer in time");
}

/* --- the link --------------------------------------------------------------------------------- */

static void on_link_opened(void *ctx, int fd)
{
        struct node *n = ctx;
        struct node_io *io = n->io;
        int r = 0;

        if (n->state != NODE_CONNECTING) {
                fd_close(fd);
                return;
        }
        io->stream = fd < 0 ? STREAM_TUNNEL : STREAM_PIPE;
        if (io->stream == STREAM_PIPE) {
                uv_pipe_init(io->loop, &io->pipe, 0);
                io->handles++;
                io->pipe.data = n;
                r = uv_pipe_open(&io->pipe, fd);
                if (r < 0)
                        fd_close(fd);
                else
                        r = uv_read_start((uv_stream_t *)&io->pipe, on_node_alloc, on_node_read);
        }
        if (r < 0) {
                node_break(n, LINK_OTHER, "cannot read from the agent: %s", uv_strerror(r));
                return;
        }
        uv_timer_start(&io->deadline, on_node_deadline, (uint64_t)io->greet_ms, 0);
        step_node(n, NODE_EV_OPENED);
}

static void on_link_failed(void *ctx, const struct link_failure *why)
{
        fail_node(ctx, why);
}

/* Keeps the reason. A pipe may still hold the agent's last bytes: there EOF fails the node. */
static void on_link_ended(void *ctx, const struct link_failure *why)
{
        struct node *n = ctx;
        struct node_io *io = n->io;
        bool was_ended = n->ended;

        if (io->stream == STREAM_TUNNEL)
                n->ended = true; /* a tunnel holds no bytes back */
        if (n->state == NODE_FAILED)
                return;
        keep_failure(n, why);
        if (n->state == NODE_GREETING && n->ended)
                fail_greeting(n);
        else if (io->stream != STREAM_PIPE || n->ended)
                fail_node(n, why);
        if (io->stream == STREAM_TUNNEL && !was_ended)
                report_node_exit(n);
}

static void on_link_received(void *ctx, const void *data, size_t len)
{
        struct node *n = ctx;
        struct node_io *io = n->io;

        if (is_given_up(n))
                return;
        if (buf_append(&io->in, data, len) < 0) {
                node_break(n, LINK_OTHER, "out of memory for the agent's messages");
                return;
        }
        n->heard_ns = clock_ns();
        take_node_input(n);
        if (buf_len(&io->in) == 0)
                buf_finish(&io->in);
}

static void on_link_writable(void *ctx)
{
        node_flush(ctx);
}

static void on_link_noise(void *ctx, const char *text, size_t len)
{
        struct node *n = ctx;

        n->io->ops->noise(n->io->ctx, n, text, len);
}

static void on_link_notice(void *ctx, enum link_notice kind, const char *text)
{
        const struct node *n = ctx;

        if (n->io->ops->notice)
                n->io->ops->notice(n->io->ctx, kind, text);
}

static void on_link_phase(void *ctx, enum link_phase phase)
{
        struct node *n = ctx;
        struct node_io *io = n->io;

        /* The transports of this process have their own timeouts, ssh on another node may not. */
        if (n->parent && n->state == NODE_CONNECTING)
                uv_timer_start(&io->deadline, on_node_deadline, (uint64_t)io->greet_ms, 0);
        io->ops->phase(io->ctx, n, phase);
}

static const struct link_callbacks link_cb = {
        .opened = on_link_opened,
        .failed = on_link_failed,
        .ended = on_link_ended,
        .noise = on_link_noise,
        .notice = on_link_notice,
        .phase = on_link_phase,
        .received = on_link_received,
        .writable = on_link_writable,
};

/* --- life cycle ------------------------------------------------------------------------------- */

void node_init(struct node *n, uv_loop_t *loop, int index, const struct host *host,
               const struct agent_binaries *agent_binaries, const struct node_ops *ops, void *ctx)
{
        n->index = index;
        n->host = host;
        n->clock = (struct clock_offset)CLOCK_OFFSET_INIT;
        n->io = xcalloc(1, sizeof(*n->io));
        n->io->loop = loop;
        n->io->agent_binaries = agent_binaries;
        n->io->ops = ops;
        n->io->ctx = ctx;
        n->io->handles = 1;
        uv_timer_init(loop, &n->io->deadline);
        n->io->deadline.data = n;
}

void node_connect(struct node *n, struct transport *t, const char *user, int64_t greet_ms)
{
        struct node_io *io = n->io;
        struct link_target to = {
                .host = n->host->name,
                .user = n->host->user ? n->host->user : user,
                .port = n->host->port,
                .via = n->parent,
                .number = (size_t)n->index,
                .has_children = n->has_children,
        };
        struct error err = { 0 };

        if (!step_node(n, NODE_EV_CONNECT))
                return;
        io->greet_ms = greet_ms;
        io->link = link_open(t, &to, &link_cb, n, &err);
        if (!io->link)
                node_break(n, LINK_SPAWN, "%s", err.text);
}

static void clear_node(struct node *n)
{
        struct node_io *io = n->io;

        hello_finish(&n->hello);
        free(n->failure);
        n->failure = NULL;
        buf_finish(&io->boot.noise);
        buf_finish(&io->in);
        buf_finish(&n->out);
        buf_finish(&io->in_flight);
}

static void drop_link(struct node *n)
{
        if (n->hello.version)
                link_close(n->io->link);
        else
                link_abandon(n->io->link);
        n->io->link = NULL;
}

void node_renew(struct node *n)
{
        struct node_io *io = n->io;

        drop_link(n);
        clear_node(n);
        io->boot = (struct bootstrap){ 0 };
        io->stream = STREAM_NONE; /* was a tunnel, which holds no descriptor */
        n->clock = (struct clock_offset)CLOCK_OFFSET_INIT;
        n->parent = NULL;
        n->has_children = n->uploaded = n->ended = false;
        n->refusal = NODE_NOT_REFUSED;
        n->state = NODE_NEW;
}

void node_again(struct node *n)
{
        if (!step_node(n, NODE_EV_AGAIN))
                return;
        n->heard_ns = clock_ns();
        if (n->ended)
                node_break(n,
                           n->failure && n->failure->cause == LINK_PARENT ? LINK_PARENT
                                                                          : LINK_ENDED,
                           "the agent exited between two attempts");
}

void node_launched(struct node *n)
{
        step_node(n, NODE_EV_LAUNCH);
}

static void on_node_handle_closed(uv_handle_t *h)
{
        struct node *n = h->data;

        n->io->handles--;
}

void node_close(struct node *n)
{
        struct node_io *io = n->io;

        if (io->closing)
                return;
        io->closing = true;
        if (io->stream == STREAM_PIPE)
                uv_close((uv_handle_t *)&io->pipe, on_node_handle_closed);
        uv_close((uv_handle_t *)&io->deadline, on_node_handle_closed);
        drop_link(n);
}

bool node_closed(const struct node *n)
{
        return n->io->closing && !n->io->handles;
}

void node_finish(struct node *n)
{
        clear_node(n);
        free(n->io);
}
