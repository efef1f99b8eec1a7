/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from the far end collect in io->in. Until the agent has greeted, the bytes belong to the
 * bootstrap, afterwards to frames: HELLO and PONG are handled here, all others are passed to
 * ops->message(). After a node was given up, no more bytes are read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "head/nodes/node_private.h"

enum { REST = 4 << 10 }; /* read at once behind the beginning of a message, at least */

/* Where the loop's reads of all nodes land. As a rule messages arrive whole, so of thousands of
 * nodes only the few in the middle of a message have an input buffer of their own. */
static struct buf shared_in;

/* The first frame must be HELLO of the same protocol version. The clock offset begins with the
 * one-way time as the error, until PONGs measure both ways. */
static void receive_node_hello(struct node *n, const struct frame *f)
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
        node_step(n, NODE_EV_HELLO);
}

/* Follows the marks of the remote shell until the agent greets. An agent that the parent in the
 * tree has as well is sent from there. */
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
                        if (n->parent && io->stream == STREAM_TUNNEL &&
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
                case BOOTSTRAP_NO_AGENT:
                        n->refusal = NODE_NO_AGENT;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                case BOOTSTRAP_NO_CONTAINER:
                        n->refusal = NODE_NO_CONTAINER;
                        node_break(n, LINK_OTHER, "%s", err.text);
                        return;
                case BOOTSTRAP_CANNOT_RUN:
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
        /* Without room libuv reports ENOBUFS, and the node fails. */
        *ret = uv_buf_init(mem, mem ? (unsigned)want : 0);
}

void node_ask_reason(struct node *n)
{
        struct link *l = n->io->link;

        if (!n->failure && n->state == NODE_RUNNING && l && l->transport->ops->explain)
                l->transport->ops->explain(l);
}

/* Handles EOF. The transport reports the end with a better reason, earlier or later: a greeting
 * node waits for that report, a running node does not. */
static void end_node_stream(struct node *n, ssize_t status)
{
        struct link_failure why = { .phase = LINK_OPEN, .cause = LINK_ENDED };
        bool was_ended = n->ended;

        node_ask_reason(n);
        n->ended = true;
        if (n->state == NODE_GREETING) {
                if (n->failure)
                        node_fail_greeting(n);
                return;
        }
        if (!was_ended)
                node_report_exit(n);
        if (n->failure)
                why = *n->failure;
        else
                snprintf(why.fact, sizeof(why.fact), "connection lost (%s)",
                         status == UV_EOF ? "end of stream" : uv_strerror((int)status));
        node_fail(n, &why);
}

/* Takes a message after HELLO. 0, or negative with @err: malformed, or out of turn. */
static int receive_node_message(struct node *n, const struct frame *f, struct error *err)
{
        struct ping pong;
        int r;

        if (f->type == MSG_PONG) {
                r = ping_decode(&pong, f, err);
                /* A PONG carries the head's own time of the PING, so a later time is made up. */
                if (r == 0 && pong.head_ns > (uint64_t)clock_ns())
                        return err_set(err, EPROTO, "message out of turn: PONG without a PING");
                if (r == 0)
                        clock_offset_pong(&n->clock, &pong, clock_ns());
                return r;
        }
        r = n->io->ops->message(n->io->ctx, n, f, err);
        if (r >= 0 && f->type == MSG_GONE)
                node_step(n, NODE_EV_DONE);
        return r;
}

bool node_is_given_up(const struct node *n)
{
        return n->state == NODE_FAILED || n->ended;
}

void node_take_input(struct node *n)
{
        struct node_io *io = n->io;
        struct error err;
        struct frame f;
        int r = 0;

        if (!io->boot.greeted)
                continue_bootstrap(n);
        /* A message may fail or close the node: both are asked before each. */
        while (io->boot.greeted && !io->closing && !node_is_given_up(n) &&
               (r = frame_peek(&io->in, &f, &err)) > 0) {
                if (n->state == NODE_GREETING) {
                        receive_node_hello(n, &f);
                } else if (receive_node_message(n, &f, &err) < 0) {
                        n->refusal = NODE_MALFORMED;
                        node_break(n, LINK_OTHER, "the agent sent a %s", err.text);
                }
                frame_consume(&io->in, &f);
        }
        if (r < 0)
                node_break(n, LINK_OTHER, "the agent sent %s", err.text);
}

/* Takes bytes of a pipe. While the node has no buffer of its own, the bytes lie in the shared
 * buffer, which stands in for the node's during the call. */
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
        node_take_input(n);
        if (shared) { /* an incomplete message moves to the node's own buffer */
                shared_in = io->in;
                io->in = (struct buf)BUF_INIT;
                buf_append(&io->in, buf_data(&shared_in), buf_len(&shared_in));
                buf_clear(&shared_in);
        } else if (buf_len(&io->in) == 0) {
                buf_finish(&io->in);
        }
        if (node_is_given_up(n)) {
                uv_read_stop(s);
                buf_finish(&io->in);
        }
}

int node_read_pipe(struct node *n)
{
        return uv_read_start((uv_stream_t *)&n->io->pipe, on_node_alloc, on_node_read);
}
