/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node works. Three sources of events drive the node, all on the main loop: the link's
 * callbacks (on_link_*), reads and writes of the link's descriptor (on_node_*), and one deadline
 * timer. Each ends in node_step(), which looks the next state up in a table and reports the change.
 *
 * node_in.c handles the bytes from the far end, node_out.c the bytes to the far end. A link through
 * another node's agent has no descriptor: transport_ops.send() and on_link_received() take the
 * place of the pipe.
 *
 * The end of a link is seen twice, as EOF and as the transport's report with a reason, in either
 * order; a greeting node waits for the reason.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/memory.h"
#include "head/nodes/node_private.h"

enum { LOGIN_TOLD_MS = 5000 }; /* a login without a command after this time is reported */

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

bool node_step(struct node *n, enum node_event e)
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

void node_fail(struct node *n, const struct link_failure *why)
{
        if (n->state == NODE_FAILED || n->state == NODE_GONE)
                return;
        keep_failure(n, why);
        node_step(n, NODE_EV_BROKEN);
}

void node_report_exit(struct node *n)
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
        /* No event leads from GONE to FAILED, so the exit is noted beside the state. */
        if (n->state == NODE_GONE && !n->ended) {
                keep_failure(n, &why);
                n->ended = true;
                node_report_exit(n);
        }
        node_fail(n, &why);
}

/* --- the link --------------------------------------------------------------------------------- */

/* Whether the far end has not begun to run the command. */
static bool is_at_login(const struct node_io *io)
{
        return !io->boot.greeted && !io->boot.sent;
}

/* Returns the length of the last lines of a text, at most @size bytes. */
static size_t find_tail(const struct buf *text, size_t size)
{
        enum { LINES = 10 };
        const char *data = (const char *)buf_data(text);
        size_t len = buf_len(text), n = 0;

        for (int lines = 0; n < MIN(len, size); n++)
                if (data[len - n - 1] == '\n' && ++lines > LINES)
                        break;
        return n;
}

/* Adds the output of the login to a failure, and the next step if the output may be the cause. */
static void add_login(const struct node_io *io, struct link_failure *why, bool may_be_login)
{
        static const char refused[] = "This account is currently not available"; /* nologin(8) */
        const struct buf *noise = &io->boot.noise;
        size_t tail = find_tail(noise, sizeof(why->evidence) - 1);
        bool is_refused = memmem(buf_data(noise), buf_len(noise), refused, strlen(refused));

        /* The message of nologin explains more than the transport's evidence. */
        if (tail && (!*why->evidence || is_refused))
                snprintf(why->evidence, sizeof(why->evidence), "%.*s", (int)tail,
                         (const char *)buf_data(noise) + buf_len(noise) - tail);
        if (is_at_login(io) && is_refused && !*why->help)
                snprintf(why->help, sizeof(why->help),
                         "the shell of this user there is nologin: name another user, USER@HOST or "
                         "--user NAME");
        if (is_at_login(io) && may_be_login && !*why->help)
                snprintf(why->help, sizeof(why->help),
                         "does a login file there (~/.bashrc) ask, exit or start another shell? "
                         "End it early for commands: [[ $- == *i* ]] || return");
}

void node_fail_greeting(struct node *n)
{
        struct link_failure why = *n->failure;

        n->refusal = why.cause == LINK_ENDED ? NODE_CANNOT_RUN : NODE_NOT_REFUSED;
        /* An exit code of the command, in the words of both ssh transports, may come from a login
         * file. */
        if (n->refusal)
                add_login(n->io, &why, !strncmp(why.fact, "the remote command ended", 24));
        node_fail(n, &why);
}

/* The time for a phase is over. During the greeting the first call only reports the words of the
 * login, which may wait for an answer; the second gives the node up. */
static void on_node_deadline(uv_timer_t *t)
{
        struct node *n = t->data;
        struct node_io *io = n->io;
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_TIMED_OUT };

        if (n->state == NODE_CONNECTING) {
                node_break(n, LINK_TIMED_OUT, "ssh timed out");
                return;
        }
        if (!io->told) {
                CLEANUP(free_textp) char *words = bootstrap_last_words(&io->boot);

                io->told = true;
                uv_timer_start(t, on_node_deadline, (uint64_t)io->greet_ms - LOGIN_TOLD_MS, 0);
                if (is_at_login(io) && io->ops->login)
                        io->ops->login(io->ctx, n, words);
                return;
        }
        n->refusal = NODE_CANNOT_RUN;
        snprintf(why.fact, sizeof(why.fact), "the agent did not answer within %s (--start-timeout)",
                 format_span((uint64_t)io->greet_ms).text);
        add_login(io, &why, true);
        node_fail(n, &why);
}

/* Begins the time from the open link to HELLO. */
static void start_greeting(struct node_io *io)
{
        io->told = (uint64_t)io->greet_ms <= LOGIN_TOLD_MS;
        uv_timer_start(&io->deadline, on_node_deadline,
                       io->told ? (uint64_t)io->greet_ms : LOGIN_TOLD_MS, 0);
}

/* The link is there: a descriptor for a pipe, or none for a tunnel through the parent. */
static void on_link_opened(void *ctx, int fd)
{
        struct node *n = ctx;
        struct node_io *io = n->io;
        int r = 0;

        /* Given up while the transport was opening the link. */
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
                /* The handle itself is closed by node_hang_up() or node_close(). */
                if (r < 0)
                        fd_close(fd);
                else
                        r = node_read_pipe(n);
        }
        if (r < 0) {
                node_break(n, LINK_OTHER, "cannot read from the agent: %s", uv_strerror(r));
                return;
        }
        start_greeting(io);
        node_step(n, NODE_EV_OPENED);
}

static void on_link_failed(void *ctx, const struct link_failure *why)
{
        node_fail(ctx, why);
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
                node_fail_greeting(n);
        else if (io->stream != STREAM_PIPE || n->ended)
                node_fail(n, why);
        if (io->stream == STREAM_TUNNEL && !was_ended)
                node_report_exit(n);
}

/* Bytes of a tunnel. Unlike bytes of a pipe, these lie in the parent's message, and are copied. */
static void on_link_received(void *ctx, const void *data, size_t len)
{
        struct node *n = ctx;
        struct node_io *io = n->io;

        if (node_is_given_up(n))
                return;
        if (buf_append(&io->in, data, len) < 0) {
                node_break(n, LINK_OTHER, "out of memory for the agent's messages");
                return;
        }
        n->heard_ns = clock_ns();
        node_take_input(n);
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
        struct node_io *io = n->io;

        /* Bash, for example, asks on stderr. */
        if (n->state < NODE_READY && !io->boot.greeted)
                bootstrap_keep_noise(&io->boot, text, len);
        io->ops->noise(io->ctx, n, text, len);
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

        if (!node_step(n, NODE_EV_CONNECT))
                return;
        io->greet_ms = greet_ms;
        io->link = link_open(t, &to, &link_cb, n, &err);
        if (!io->link)
                node_break(n, LINK_SPAWN, "%s", err.text);
}

/* Frees the contents gathered by an attempt; n->io and the handles stay. */
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

/* Closes the link. Without a HELLO a process of this machine may still be connecting, and is
 * ended. */
static void drop_link(struct node *n)
{
        if (n->hello.version)
                link_close(n->io->link);
        else
                link_abandon(n->io->link);
        n->io->link = NULL;
}

static void on_node_handle_closed(uv_handle_t *h)
{
        struct node *n = h->data;

        n->io->handles--;
}

void node_hang_up(struct node *n)
{
        struct node_io *io = n->io;

        if (io->stream == STREAM_PIPE)
                uv_close((uv_handle_t *)&io->pipe, on_node_handle_closed);
        io->stream = STREAM_NONE;
}

bool node_hung_up(const struct node *n)
{
        return n->io->stream == STREAM_NONE && n->io->handles == 1; /* the deadline */
}

void node_renew(struct node *n)
{
        struct node_io *io = n->io;

        drop_link(n);
        clear_node(n);
        io->boot = (struct bootstrap){ 0 };
        io->stream = STREAM_NONE;
        uv_timer_stop(&io->deadline);
        n->clock = (struct clock_offset)CLOCK_OFFSET_INIT;
        n->parent = NULL;
        n->has_children = n->uploaded = n->ended = n->again = false;
        n->silent_ns = 0;
        n->signals.leaves = false;
        n->refusal = NODE_NOT_REFUSED;
        n->state = NODE_NEW;
}

void node_again(struct node *n)
{
        if (!node_step(n, NODE_EV_AGAIN))
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
        node_step(n, NODE_EV_LAUNCH);
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
